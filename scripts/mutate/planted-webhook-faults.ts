import type { PlantedFault } from './planted-fault.ts';

const query = (name: string) => `services/query-api/src/${name}`;
const webhooks = (name: string) => query(`webhooks/${name}`);

/** Faults of webhooks, alerts and saved views that prove their simulator: it has to find each of them within a minute. */
export const PLANTED_WEBHOOK_FAULTS: readonly PlantedFault[] = [
  // A change to something that runs.
  {
    name: 'webhooks/change-in-place-of-nothing',
    file: query('store/own-rows.ts'),
    search: 'settingsOfFirst(',
    replacement: '((_token: string) => ({}))(',
    breaks: 'Of two changes at once the later one undoes the other.',
  },
  {
    name: 'webhooks/change-not-delivered',
    file: webhooks('webhook-deliveries.ts'),
    search: '!isSame || JSON.stringify(webhook) !== JSON.stringify(now?.webhook)',
    replacement: '!isSame',
    breaks: 'A webhook is delivered to the address, and signed with the secret, of before.',
  },
  // The far side of a period.
  {
    name: 'webhooks/deletion-dated-now',
    file: webhooks('webhook-register.ts'),
    search: '(Date.now() + DELETED_LATER_MS) * 1_000',
    replacement: 'Date.now() * 1_000',
    breaks: 'A change that arrives after the deletion brings a webhook back.',
  },
  {
    name: 'webhooks/clock-set-back',
    file: query('store/own-rows.ts'),
    search: 'Math.max(Date.now() * 1_000, version + 1)',
    replacement: 'Date.now() * 1_000',
    breaks: 'A change by an instance whose clock was set back is lost, and is made again and again.',
  },
  {
    name: 'webhooks/lease-over-and-sent',
    file: webhooks('deliverer.ts'),
    search: '    if (signal.aborted || this.#start.leaseMsLeft() <= 0) return undefined;\n    const secrets',
    replacement: '    if (signal.aborted) return undefined;\n    const secrets',
    breaks: 'A process that was frozen sends on after its lease is over.',
  },
  // An engine that is slow.
  {
    name: 'webhooks/epoch-claimed-again',
    file: webhooks('webhook-deliveries.ts'),
    search: 'epoch: (before.get(webhook)?.epoch ?? 0) + 1 }));',
    replacement: 'epoch: before.get(webhook)?.epoch || 1 }));',
    breaks: 'Whoever takes a webhook over has the epoch of the one before, and neither delivers it.',
  },
  {
    name: 'webhooks/slow-change-not-seen',
    file: webhooks('known-webhooks.ts'),
    search: 'const LATE_MS = 600_000;',
    replacement: 'const LATE_MS = 0;',
    breaks: 'A webhook whose insert took long is never delivered.',
  },
  // A retry after a failure.
  {
    name: 'webhooks/unclear-attempt-delivered',
    file: webhooks('deliverer.ts'),
    search: '    if (!attempt.isDelivered) {\n',
    replacement: '    if (attempt.status > 0 && !attempt.isDelivered) {\n',
    breaks: 'What a receiver did not respond to is not sent again.',
  },
  {
    name: 'webhooks/position-not-stored-again',
    file: webhooks('webhook-positions.ts'),
    search: "'cannot store the positions of webhooks; retrying');\n      return false;",
    replacement: "'cannot store the positions of webhooks; retrying');\n      throw error;",
    breaks: 'After a position could not be stored once, nobody handles it.',
  },
  {
    name: 'webhooks/alert-not-stored-before-sent',
    file: query('alerts/deciding-source.ts'),
    search: 'end: position, isWhole: false,',
    replacement: 'end: position, isWhole: true,',
    breaks: 'After a crash an alert says something else with the id of a message that was delivered.',
  },
  {
    name: 'webhooks/alert-forgets-what-it-said',
    file: query('alerts/deciding-source.ts'),
    search: '    this.#state = decided.state;\n',
    replacement: '    if (!decided.message) this.#state = decided.state;\n',
    breaks: 'An alert that fires says so again with each window.',
  },
  {
    name: 'webhooks/alert-ids-of-before',
    file: query('alerts/alert-source.ts'),
    search: 'messages: after.messages + 1,',
    replacement: 'messages: 1,',
    breaks: 'All messages of an alert have one id, and a receiver drops those that it takes for copies.',
  },
  // Arithmetic that is shared.
  {
    name: 'webhooks/place-not-handed-on',
    file: webhooks('attempt-places.ts'),
    search: '      if (next) return next();\n',
    replacement: '      if (next) state.waiting.delete(next);\n',
    breaks: 'A delivery that waits for a place never gets one.',
  },
  {
    name: 'webhooks/resumed-before-its-holder-has-left',
    file: 'services/query-api/src/webhooks/webhook-operations.ts',
    search: 'if (change.position === undefined) await asUnavailable(lease.untilAlone());',
    replacement: '',
    breaks: 'A message that is sent while its webhook is resumed comes again as another one with the same id.',
  },
];
