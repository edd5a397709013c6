// Judges a page by what a person without mouse, eyesight or a wide screen needs of it, and by its
// own content security policy. Nothing here knows which page it is.

import fs from 'node:fs';

const AXE = new URL('node_modules/axe-core/axe.min.js', import.meta.url);

// Violations of axe-core's rules that are serious or critical, as "rule: selector".
export async function unfit(page) {
  await page.evaluate(fs.readFileSync(AXE, 'utf8')); // through the debugger: no policy forbids it
  const violations = await page.evaluate(async () => {
    const { violations } = await window.axe.run({ resultTypes: ['violations'] });
    return violations.map(({ id, impact, nodes }) => ({ id, impact, at: nodes[0].target.join() }));
  });
  return violations
    .filter(({ impact }) => ['serious', 'critical'].includes(impact))
    .map(({ id, at }) => `${id}: ${at}`);
}

// The next press of Tab begins at the top. Pressing on from the bottom would lead through the
// browser's own bars, from where Firefox does not quite come back.
function toTop() {
  document.body.tabIndex = -1; // for once
  document.body.focus();
  document.body.removeAttribute('tabindex');
}

// Where the Tab key leads from the top of the page: ids, or labels, up to `last`.
export async function tabOrder(page, last, limit = 60) {
  await page.evaluate(toTop);
  const seen = [];
  while (seen.length < limit && seen.at(-1)?.name !== last) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const { activeElement: element } = document;
      const ring = element && getComputedStyle(element).outlineStyle !== 'none';
      const name = element?.id || element?.getAttribute('aria-labelledby') || element?.textContent;
      return { name: name?.trim(), ring };
    });
    seen.push(at);
  }
  return seen;
}

// Press Tab, from the top of the page, until the element with `id` has the focus; how many presses
// it took.
export async function tabTo(page, id, limit = 60) {
  await page.evaluate(toTop);
  for (let press = 1; press <= limit; press += 1) {
    await page.keyboard.press('Tab');
    if (await page.evaluate((wanted) => document.activeElement?.id === wanted, id)) return press;
  }
  throw new Error(`no ${limit} presses of Tab reach #${id}`);
}

// Keeps violations of the page's content security policy in `window.violations`.
export async function watchPolicy(page) {
  await page.evaluate(() => {
    window.violations = [];
    addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
      window.violations.push(`${violatedDirective}: ${blockedURI}`),
    );
  });
  return () => page.evaluate(() => window.violations);
}

// How far the page is wider than a window of `width`, of which a scroll bar may take a part.
export async function overflow(page, width) {
  await page.setViewport({ width, height: 700 });
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth - clientWidth;
  });
}
