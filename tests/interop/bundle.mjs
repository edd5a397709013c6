// Bundles pages, with the packages that they import, for browsers: bundle.mjs DIRECTORY PAGE…

import { build } from 'esbuild';

const [outdir, ...entryPoints] = process.argv.slice(2);
await build({ entryPoints, outdir, bundle: true, format: 'iife', logLevel: 'error' });
