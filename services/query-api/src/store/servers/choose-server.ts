/** What is known of a server. */
export interface ServerStatus {
  readonly name: string;
  /** Why it cannot be read; undefined when it can. */
  readonly unusable: string | undefined;
  /** Whether it answers: then it is known which deletions it has. */
  readonly answers: boolean;
  /** Whether messages were given up that it lacks. */
  readonly isIncomplete: boolean;
  /** How far behind Kafka it is, in milliseconds. */
  readonly behindMs: number;
}

export interface ChoiceLimits {
  /** By how much the server that is read may be behind the freshest one, in milliseconds. */
  readonly lagMsMax: number;
  /** How far behind Kafka it may be while others do not answer, in milliseconds. */
  readonly staleMsMax: number;
  /** Whether it is one of several ranges: then servers that answer may have deletions that no mirror of it has. */
  readonly isOfRange: boolean;
  /** Whether the servers are replicas: what one has erased, it knows no more, and another one may still have. */
  readonly areReplicas?: boolean | undefined;
}

export type Choice = { readonly name: string } | { readonly reason: string };

/**
 * Chooses which of several mirrors to read: the same as before while it is usable and not too far behind the freshest one, else
 * the first that is. A mirror that lacks messages is read only where no other one is usable.
 *
 * @param before the name of the one that was read before
 * @returns its name, or why none can be read
 */
export function chooseServer(
  statuses: readonly ServerStatus[],
  before: string | undefined,
  { lagMsMax, staleMsMax, isOfRange, areReplicas = false }: ChoiceLimits,
): Choice {
  const usable = statuses.filter(({ unusable }) => unusable === undefined);
  const complete = usable.filter(({ isIncomplete }) => !isIncomplete);
  const candidates = complete.length > 0 ? complete : usable;
  const freshestMs = Math.min(...candidates.map(({ behindMs }) => behindMs));
  const inTime = candidates.filter(({ behindMs }) => behindMs - freshestMs <= lagMsMax || behindMs === freshestMs);
  const chosen = inTime.find(({ name }) => name === before) ?? inTime[0];
  if (!chosen) return { reason: statuses.map(({ name, unusable }) => `${name}: ${unusable}`).join('; ') };
  // A server that does not answer may have deletions of users that the others lack: they would be visible again.
  const isFresherElsewhere = areReplicas && statuses.some((one) => one.answers && isFresher(one, chosen, staleMsMax));
  const mayLack = isOfRange || isFresherElsewhere || statuses.some(({ answers }) => !answers);
  const isStale = chosen.behindMs > staleMsMax && mayLack;
  if (!isStale) return { name: chosen.name };
  if (isFresherElsewhere) return { reason: `${chosen.name} is too far behind others, which cannot be read` };
  return { reason: `${chosen.name} is too far behind${isOfRange ? '' : ', and others do not answer'}` };
}

/** Whether a server has what another one has lacked for longer than a time. */
function isFresher(one: ServerStatus, other: ServerStatus, ms: number): boolean {
  return one !== other && other.behindMs - one.behindMs > ms;
}
