/**
 * The client libraries that metrics tell apart, each with what it says of itself besides that name: in lower case, in the
 * calls or at the beginning of its `User-Agent`.
 */
const CLIENT_LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  // Segment's. Those of RudderStack for servers say the same.
  'analytics-android': [],
  'analytics-csharp': ['analytics.net'],
  'analytics-go': [],
  'analytics-ios': [],
  'analytics-java': [],
  'analytics-kotlin': [],
  'analytics-node': ['@segment/analytics-node', 'analytics-node-next'],
  'analytics-php': [],
  'analytics-python': [],
  'analytics-react-native': ['@segment/analytics-react-native'],
  'analytics-ruby': [],
  'analytics-rust': [],
  'analytics-swift': [],
  'analytics.js': [],
  // RudderStack's.
  'rudder-android': ['com.rudderstack.android'],
  'rudder-ios': ['rudder-ios-library'],
  'rudder-js': ['rudderlabs javascript sdk'],
  'rudder-php': ['rudder-analytics-php'],
  'rudder-python': ['rudder-analytics-python'],
  'rudder-ruby': ['rudderanalytics-ruby'],
  // PostHog's.
  'posthog-android': [],
  'posthog-dotnet': [],
  'posthog-elixir': [],
  'posthog-flutter': [],
  'posthog-go': [],
  'posthog-ios': [],
  'posthog-java': ['posthog-server'],
  'posthog-js': ['web'],
  'posthog-node': [],
  'posthog-php': [],
  'posthog-python': [],
  'posthog-react-native': [],
  'posthog-rs': [],
  'posthog-ruby': [],
};

/** Any other client, and programs without one. */
const OTHER = 'other';

/** What the label `client` of metrics can be: a producer cannot add to it. */
export const CLIENTS: readonly string[] = [...Object.keys(CLIENT_LIBRARIES), OTHER];

const CLIENT_OF_NAME: ReadonlyMap<string, string> = new Map(
  Object.entries(CLIENT_LIBRARIES).flatMap(([client, names]) =>
    [client, ...names].map((name) => [name, client] as const),
  ),
);

/** The longest first: one name may begin with another. `web` is too short to begin a `User-Agent`. */
const USER_AGENTS = [...CLIENT_OF_NAME.keys()]
  .filter((name) => name.includes('-') || name.includes('.'))
  .sort((a, b) => b.length - a.length);

/** As far as a body is searched, in bytes: the first call is in it, but for a very large one. */
const SEARCHED_BYTES_MAX = 64 * 1_024;

/** `"library": {"name": "analytics-php", …}`, `"library": "posthog-ruby"` or `"$lib": "web"`. */
const LIBRARY = /"(?:library|\$lib)"\s*:\s*(?:\{[^{}]{0,200}?"name"\s*:\s*)?"([^"\\]{1,64})"/g;

/**
 * Returns the client library that a request comes from: the first that its calls name, else that of its `User-Agent`, else
 * `other`. The calls count first, because pages send the `User-Agent` of the browser. What else a request may say to look
 * like another client harms nobody: the name is one of {@link CLIENTS}.
 */
export function clientOf(body: Buffer, userAgent: string | undefined): string {
  // As text of one byte a character: names have no others.
  for (const [, name = ''] of body.toString('latin1', 0, SEARCHED_BYTES_MAX).matchAll(LIBRARY)) {
    const client = CLIENT_OF_NAME.get(libraryName(name));
    if (client !== undefined) return client;
  }
  const agent = userAgent?.slice(0, 64).toLowerCase() ?? '';
  const known = USER_AGENTS.find((name) => agent.startsWith(name));
  return known === undefined ? OTHER : (CLIENT_OF_NAME.get(known) ?? OTHER);
}

/** Libraries for Android name a package of theirs: `com.rudderstack.android.sdk.core`. */
function libraryName(name: string): string {
  const lower = name.toLowerCase();
  return lower.startsWith('com.rudderstack.android') ? 'com.rudderstack.android' : lower;
}
