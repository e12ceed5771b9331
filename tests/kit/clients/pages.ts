import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { eventually } from '@sluice/shared/testing/eventually';
import type { Locator, Page } from 'playwright-core';

/** Without a value, which would be sent here. */
const AXE = `${await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')};undefined`;

/** Where pages are kept as pictures, for people; unset: nowhere. */
const PICTURES = process.env['SLUICE_CONSOLE_PICTURES'];

/**
 * Waits until one element matches, and is visible. The page that is left may have several that match, so these are waited for,
 * too. Playwright's own wait looks only twice a second, after the first moments.
 *
 * @throws {TooLate} when it is not in time
 */
export async function shown(element: Locator): Promise<void> {
  await eventually(() => element.isVisible(), { message: `one element: ${element}` }).toBe(true);
}

/** Presses Tab until an element has the focus. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  for (let count = 0; !(await isFocused(target)); count += 1) {
    if (count === 100) throw new Error('the keyboard does not reach it');
    await page.keyboard.press('Tab');
  }
}

/** Presses Tab until something of a list has the focus, and then Down until an element of the list has it. */
export async function arrowTo(page: Page, target: Locator): Promise<void> {
  await tabTo(page, target.locator('xpath=ancestor::section[1]').locator('tbody [tabindex="0"]').first());
  for (let count = 0; !(await isFocused(target)); count += 1) {
    if (count === 100) throw new Error('the arrows do not reach it');
    await page.keyboard.press('ArrowDown');
  }
}

export function isFocused(target: Locator): Promise<boolean> {
  return target.evaluate((element) => element === element.ownerDocument.activeElement);
}

/** By how many pixels a page, or on a phone one of its lists, is wider than what shows it. Wide lists scroll elsewhere. */
export async function overflowOf(page: Page): Promise<number> {
  return await page.evaluate(`Math.max(
    ...[document.documentElement, ...(innerWidth <= 480 ? document.querySelectorAll('.rows') : [])].map(
      ({ scrollWidth, clientWidth }) => scrollWidth - clientWidth,
    ),
  )`);
}

/**
 * Returns the violations that axe-core finds.
 *
 * @param rules default: all
 */
export async function violationsOf(page: Page, rules?: readonly string[]): Promise<string[]> {
  // The policy of the page does not hold for what the debugger evaluates. A document keeps it.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  return await page.evaluate(async (runOnly) => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    // One element for each rule is enough of what else it finds.
    const { violations } = await axe.run({ resultTypes: ['violations'], ...(runOnly && { runOnly }) });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  }, rules);
}

/** Keeps a picture of a page, if somebody wants pictures. */
export async function takePicture(page: Page, name: string): Promise<void> {
  if (!PICTURES) return;
  await mkdir(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
}
