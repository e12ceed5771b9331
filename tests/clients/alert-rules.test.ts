import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { findPrometheus } from '../kit/prometheus-programs.ts';
import { readAlertRules } from '../kit/scaled-rules.ts';

const FOLDER = join(import.meta.dirname, '..', '..', 'deploy', 'prometheus');
const RULES = join(FOLDER, 'sluice.rules.yml');

const testFiles = (await readdir(join(FOLDER, 'tests'))).map((name) => join(FOLDER, 'tests', name));

async function promtool(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)((await findPrometheus()).promtool, args);
  return stdout;
}

test('promtool finds nothing wrong with the rules and the scrape configuration', async () => {
  expect(await promtool('check', 'rules', '--lint-fatal', RULES)).toContain('SUCCESS');
  expect(await promtool('check', 'config', '--lint-fatal', join(FOLDER, 'prometheus.yml'))).toContain('SUCCESS');
});

test('the tests of the rules pass', async () => {
  expect(await promtool('test', 'rules', ...testFiles)).toContain('SUCCESS');
});

test('the tests of the rules have every alert fire, and not fire', async () => {
  const cases: { alertname: string; exp_alerts: unknown[] }[] = [];
  for (const file of testFiles) {
    const { tests } = parse(await readFile(file, 'utf8'));
    for (const { alert_rule_test } of tests) cases.push(...alert_rule_test);
  }
  const namesOf = (found: readonly { readonly alertname: string }[]) =>
    [...new Set(found.map(({ alertname }) => alertname))].sort();
  const names = [...new Set(readAlertRules(await readFile(RULES, 'utf8')).map(({ alert }) => alert))].sort();
  expect(namesOf(cases.filter(({ exp_alerts }) => exp_alerts.length > 0))).toEqual(names);
  expect(namesOf(cases.filter(({ exp_alerts }) => exp_alerts.length === 0))).toEqual(names);
});
