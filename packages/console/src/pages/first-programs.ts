/** A way to send the first event. */
export interface FirstProgram {
  /** As the address of the page has it. */
  readonly name: string;
  readonly title: string;
  /** A command that installs what the program needs. Default: nothing. */
  readonly install?: string;
  /** The file of the program; `undefined` of a command. */
  readonly file?: string;
  readonly text: string;
  /** The command that runs the file. Default: it is a page, or part of one. */
  readonly run?: string;
}

/** The user, the organization and the event are the same in each: the page shows them as they arrive. */
const EVENT = 'signed_up';

/**
 * Returns complete programs that send an event.
 *
 * @param url the address of ingest-api
 * @param key an API key with the scope `ingest`
 */
export function firstPrograms(url: string, key: string): readonly FirstProgram[] {
  return [
    {
      name: 'curl',
      title: 'curl',
      text: `curl -X POST ${url}/v1/public/userGroups \\
  -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
  -d '{"foreignUserGroupId":"acme","foreignUserId":"jane","events":[{"event":"${EVENT}","properties":{"plan":"pro"}}]}'`,
    },
    {
      name: 'node',
      title: 'Node.js',
      install: 'npm install @segment/analytics-node',
      file: 'send.mjs',
      text: `import { Analytics } from '@segment/analytics-node';

const analytics = new Analytics({ writeKey: '${key}', host: '${url}' });
analytics.on('error', (error) => console.error(error));
analytics.track({ userId: 'jane', event: '${EVENT}', properties: { plan: 'pro' }, context: { groupId: 'acme' } });
await analytics.closeAndFlush();`,
      run: 'node send.mjs',
    },
    {
      name: 'python',
      title: 'Python',
      install: 'python3 -m pip install segment-analytics-python',
      file: 'send.py',
      text: `from segment.analytics import Client

client = Client('${key}', host='${url}')
client.track('jane', '${EVENT}', {'plan': 'pro'}, context={'groupId': 'acme'})
client.shutdown()`,
      run: 'python3 send.py',
    },
    {
      name: 'browser',
      title: 'Browser',
      file: 'index.html',
      text: `<!doctype html>
<script type="module">
  await fetch('${url}/v1/track', {
    method: 'POST',
    keepalive: true,
    headers: { Authorization: 'Bearer ${key}', 'Content-Type': 'application/json' },
    body: JSON.stringify({
      ...{ userId: 'jane', event: '${EVENT}', properties: { plan: 'pro' }, context: { groupId: 'acme' } },
      messageId: crypto.randomUUID(),
    }),
  });
</script>`,
    },
    {
      name: 'segment',
      title: 'Segment',
      install: 'npm install @segment/analytics-next',
      text: `import { AnalyticsBrowser } from '@segment/analytics-next';

const analytics = AnalyticsBrowser.load(
  { writeKey: '${key}', cdnSettings: { integrations: { 'Segment.io': { apiKey: '${key}' } } } },
  { integrations: { 'Segment.io': { apiHost: '${url.replace(/^https?:\/\//, '')}/v1', protocol: '${url.split(':')[0]}' } } },
);
await analytics.track('${EVENT}', { plan: 'pro' });`,
    },
    {
      name: 'posthog',
      title: 'PostHog',
      install: 'npm install posthog-js',
      text: `import posthog from 'posthog-js';

posthog.init('${key}', { api_host: '${url}' });
posthog.capture('${EVENT}', { plan: 'pro' });`,
    },
  ];
}
