import { expect, test } from 'vitest';
import { NEW_STATE } from './alert-state.ts';
import { alertBody, changeText, digestBody, numberText, plainInSlack } from './messages.ts';

/** What Slack shows of a text: without the characters that have no width. */
const shown = (text: string) => text.replaceAll('\u2060', '');

test('a text from outside becomes no formatting, link, mention or line', () => {
  const hostile =
    '*b* _i_ ~s~ `c` <https://evil.example|click> <!channel> @here #general :bomb: evil.example\n> quote & more';
  const plain = plainInSlack(hostile);
  expect(plain).not.toMatch(/[<>\n]|&(?!amp;|lt;|gt;)|[*_~`|:./@#](?!\u2060)/);
  expect(shown(plain)).toBe(
    '*b* _i_ ~s~ `c` &lt;https://evil.example|click&gt; &lt;!channel&gt; @here #general :bomb: evil.example &gt; quote &amp; more',
  );
});

const CHANGED = {
  ...{ id: 'i', message: 'msg_1', viewName: '<Paid>' },
  alert: {
    ...{ name: 'Few & far', view: 'v', condition: { is: 'below', threshold: 1234.5 } as const },
    ...({ window: '1h', for: 1, format: 'slack' } as const),
  },
  state: { ...NEW_STATE, value: 12, firing: true },
  window: { startMs: Date.UTC(2026, 2, 1, 11), endMs: Date.UTC(2026, 2, 1, 12) },
};

test('an alert for Slack is one text', () => {
  const { text, ...others } = JSON.parse(alertBody(CHANGED)) as { text: string };
  expect(others).toEqual({ mrkdwn: false });
  expect(shown(text)).toBe(
    'Firing: Few &amp; far. &lt;Paid&gt;: 12 from 2026-03-01 11:00 UTC to 2026-03-01 12:00 UTC (fires below 1,234.5).',
  );
  expect(shown(JSON.parse(alertBody({ ...CHANGED, state: { ...CHANGED.state, firing: false } })).text)).toMatch(
    /^Resolved: /,
  );
});

test('a digest for Slack has a line for each number', () => {
  const body = digestBody({
    ...{ id: 'i', message: 'msg_1', dashboardName: 'Morning', dueMs: 0, endMs: Date.UTC(2026, 2, 1) },
    digest: { dashboard: 'd', hour: 8, timeZone: 'UTC', format: 'slack' },
    numbers: [
      { view: { id: 'v', name: 'Paid' }, value: 12, before: 10, error: null },
      { view: { id: 'w', name: 'New' }, value: 3, before: 0, error: null },
      { view: { id: 'x', name: 'Dear' }, value: null, before: null, error: 'It took too long' },
    ],
  });
  expect(shown(JSON.parse(body).text).split('\n')).toEqual([
    'Morning, up to 2026-03-01 00:00 UTC',
    '• Paid: 12 (before: 10, +20 %)',
    '• New: 3 (before: 0, from 0)',
    '• Dear: not known, It took too long',
  ]);
});

test('numbers and changes as texts', () => {
  expect([null, 0, 1_234_567.891].map(numberText)).toEqual(['no number', '0', '1,234,567.89']);
  expect([undefined, 0, -12.345, 20].map(changeText)).toEqual(['no change known', '0 %', '-12.35 %', '+20 %']);
});
