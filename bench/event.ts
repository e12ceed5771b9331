const TIMESTAMP = '2026-03-01T12:00:00.000Z';

const PROPERTIES = JSON.stringify({
  plan: 'business',
  seats: 42,
  trial: false,
  price: 199.5,
  currency: 'EUR',
  source: 'invitation by a colleague',
  path: '/settings/team/members',
  tags: ['web', 'onboarding', 'team'],
  device: { os: 'Linux', browser: 'Firefox 140.0', width: 2560, height: 1440 },
  note: 'Sent by Ada.',
});

const CONTEXT = JSON.stringify({
  ip: '203.0.113.7',
  locale: 'en-GB',
  library: { name: 'sluice-js', version: '1.4.2' },
  page: { url: 'https://app.example/settings/team', title: 'Team members' },
});

/** An event of 600 bytes as JSON. Its UUID ends in its number, so that the sum of numbers shows which were stored. */
export function eventJson(number: number): string {
  const uuid = `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;
  return `{"event":"member_invited","uuid":"${uuid}","timestamp":"${TIMESTAMP}","anonymousId":"anon-7f3a","properties":${PROPERTIES},"context":${CONTEXT}}`;
}
