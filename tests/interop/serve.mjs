// Serves bundled pages from an origin of their own, as a site's own pages come.

import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

// `name.html` is a page that runs the bundle `name.js` of `directory`.
export async function serve(directory) {
  const server = http.createServer((request, response) => {
    const name = path.basename(new URL(request.url, 'http://localhost').pathname);
    const html = name.endsWith('.html');
    response.setHeader('Content-Type', html ? 'text/html' : 'text/javascript');
    if (html) {
      const script = name.replace('.html', '.js');
      response.end(`<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script src="${script}"></script>`);
      return;
    }
    fs.readFile(path.join(directory, name), (error, content) => {
      if (error) response.statusCode = 404;
      response.end(content);
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
