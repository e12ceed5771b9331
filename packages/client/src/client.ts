/// <reference lib="esnext.disposable" preserve="true" />
import type {
  AnyEvents,
  Call,
  CallFields,
  CallStore,
  ClientError,
  EventMap,
  FlushOptions,
  Properties,
} from './calls.ts';
import { type Report, SendQueue } from './send-queue.ts';
import { uuidV7 } from './uuid.ts';

export type {
  AnyEvents,
  Call,
  CallFields,
  CallStore,
  ClientError,
  ClientErrorCode,
  FlushOptions,
  QueuedCall,
} from './calls.ts';

/** The service names so many rejected calls of a batch. */
const BATCH_CALLS_MAX = 1_000;

export interface ClientOptions<Events extends EventMap<Events> = AnyEvents> {
  /** The address of ingest-api: `https://events.example.com`. */
  readonly url: string;
  /** An API key with the scope `ingest`. */
  readonly key: string;
  /** Returns fields for every call, which has its own instead where it has them. It runs at each call. */
  readonly defaults?: (() => CallFields) | undefined;
  /** Standard Schemas of properties. Used where `process.env.NODE_ENV` exists and is not `production`. */
  readonly schemas?: { readonly [Name in keyof Events]?: StandardSchema<Events[Name]> } | undefined;
  /** Gets every error. No method throws any. Default: a warning on the console. What it throws is ignored. */
  readonly onError?: ((error: ClientError) => unknown) | undefined;
  /** A batch with so many calls is sent at once; up to 1,000. Default 100. */
  readonly batchCallsMax?: number | undefined;
  /** A call is sent after so many milliseconds at the latest. Default 2,000. */
  readonly batchAgeMsMax?: number | undefined;
  /** A queue with more calls, or more than 16 MiB of JSON, drops its oldest. Default 10,000. */
  readonly queueCallsMax?: number | undefined;
  /** Keeps calls beyond the life of a page. Default: they are in memory only. */
  readonly store?: CallStore | undefined;
}

/** The arguments after an event's name: its properties may be left out when none of them is required. */
export type TrackArguments<EventProperties> =
  Record<never, never> extends EventProperties
    ? [properties?: EventProperties, fields?: CallFields]
    : [properties: EventProperties, fields?: CallFields];

export interface Client<Events extends EventMap<Events> = AnyEvents> extends AsyncDisposable {
  /** Something happened. */
  track<Name extends keyof Events & string>(event: Name, ...rest: TrackArguments<Events[Name]>): void;
  /** Sets properties of a user; `null` removes one. */
  identify(userId: string, traits?: Properties, fields?: CallFields): void;
  /** Sets properties of an organization; with a user in `fields`, the user belongs to it. */
  group(groupId: string, traits?: Properties, fields?: CallFields): void;
  /** A page was viewed. */
  page(name?: string, properties?: Properties, fields?: CallFields): void;
  /**
   * Sends the calls made so far without waiting for a full batch. Resolves once all of them are delivered or dropped, with
   * 0, or after the timeout, with the number of those that are left. They stay in the queue.
   */
  flush(options?: FlushOptions): Promise<number>;
  /** Flushes and ends the client. Resolves with the number of calls that were not delivered. */
  close(options?: FlushOptions): Promise<number>;
}

/**
 * Creates a client, which sends calls in the background.
 *
 * @example
 * await using client = createClient({ url: 'https://events.example.com', key });
 * client.track('signed_up', { plan: 'pro' }, { userId: 'jane' });
 */
export function createClient<Events extends EventMap<Events> = AnyEvents>(
  options: ClientOptions<Events>,
): Client<Events> {
  const { schemas, defaults, onError = ({ code, message }) => console.warn(`Sluice: ${code}: ${message}`) } = options;
  const { batchCallsMax = 100, batchAgeMsMax = 2_000, queueCallsMax = 10_000 } = options;
  const report: Report = async (code, message, dropped, call, status) => {
    try {
      await onError({ code, message: String(message), dropped, call: call && JSON.parse(call.text), status });
    } catch {}
  };
  const queue = new SendQueue(
    {
      ...options,
      batchCallsMax: Math.min(batchCallsMax, BATCH_CALLS_MAX),
      batchAgeMsMax,
      queueCallsMax,
      url: `${options.url.replace(/\/+$/, '')}/v1/batch`,
    },
    report,
  );

  function call(own: Call, fields?: CallFields): void {
    try {
      const id = fields?.messageId ?? uuidV7(Date.now());
      const text = JSON.stringify({ timestamp: new Date(), ...defaults?.(), ...fields, messageId: id, ...own });
      queue.add({ id, text });
    } catch (error) {
      report('invalid_call', error, 1);
    }
  }

  async function check(schema: StandardSchema<never>, event: string, properties: Properties = {}): Promise<void> {
    try {
      // Bundlers replace the expression. Where `process` does not exist, nothing says that this is development.
      // biome-ignore lint/style/noProcessEnv: the convention by which packages tell development from production
      if (process.env['NODE_ENV'] === 'production') return;
      const { issues } = await schema['~standard'].validate(properties);
      if (issues) report('invalid_properties', `${event}: ${JSON.stringify(issues)}`, 0);
    } catch {}
  }

  return {
    track(event, ...[properties, fields]) {
      const schema = schemas?.[event];
      if (schema) void check(schema as StandardSchema<never>, event, properties);
      call({ type: 'track', event, properties }, fields);
    },
    identify: (userId, traits, fields) => call({ type: 'identify', userId, traits }, fields),
    group: (groupId, traits, fields) => call({ type: 'group', groupId, traits }, fields),
    page: (name, properties, fields) => call({ type: 'page', name, properties }, fields),
    flush: (limit) => queue.flush(limit),
    close: (limit) => queue.close(limit),
    async [Symbol.asyncDispose]() {
      await queue.close();
    },
  };
}

/** What this package uses of the Standard Schema interface (standardschema.dev), which zod, valibot, arktype and others have. */
export interface StandardSchema<Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult | Promise<SchemaResult>;
    readonly types?: { readonly input: Input; readonly output: unknown } | undefined;
  };
}

interface SchemaResult {
  readonly issues?: readonly SchemaIssue[] | undefined;
}

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}
