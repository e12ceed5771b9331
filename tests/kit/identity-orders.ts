import type { Random } from '../simulation/world/random.ts';

// Who anonymous visitors are, in small random graphs with several deletions and returns, and what has to be answered in whichever order
// all of it arrives: computed from the facts one by one.

/** Something named a visitor and a user; or somebody said whose the visitor is. */
interface Fact {
  readonly anonymousId: string;
  /** Empty: nobody. */
  readonly userId: string;
  readonly version: number;
  readonly isSaid: boolean;
}

interface GraphEvent {
  readonly uuid: string;
  readonly userId: string;
  readonly anonymousId: string;
  readonly version: number;
}

interface Deletion {
  readonly userId: string;
  readonly version: number;
}

export interface IdentityGraph {
  readonly events: readonly GraphEvent[];
  readonly facts: readonly Fact[];
  readonly deletions: readonly Deletion[];
}

const VISITORS = ['phone', 'desk', 'kiosk'];
const USERS = ['ada', 'bob', 'cy'];

/** How many versions are drawn from. */
const DRAWN = 40;

/** How many versions a graph has: those of the next one may follow them. */
export const VERSIONS_OF_GRAPH = DRAWN + VISITORS.length;

/**
 * Draws a graph, of which everything has a version of its own.
 *
 * @param prefix begins all identifiers, so that graphs in one workspace have nothing to do with each other
 */
export function drawGraph(random: Random, prefix: string, startUs: number): IdentityGraph {
  const versions = shuffled(
    Array.from({ length: DRAWN }, (_, place) => startUs + place),
    random,
  );
  const version = () => versions.pop() as number;
  const several = <Item>(least: number, most: number, draw: () => Item): Item[] =>
    Array.from({ length: least + random.below(most - least + 1) }, draw);
  const user = () => prefix + random.pick(USERS);
  const anonymousId = () => prefix + random.pick(VISITORS);
  const event = (received: number, visitor: string, userId: string): GraphEvent => ({
    ...{ uuid: uuidOf(received), version: received, anonymousId: visitor, userId },
  });
  return {
    events: [
      ...several(3, 9, () => event(version(), anonymousId(), random.isTrue(0.3) ? user() : '')),
      // Nothing deletes these: they say whose each visitor is in the end.
      ...VISITORS.map((visitor, index) => event(startUs + DRAWN + index, prefix + visitor, '')),
    ],
    facts: several(2, 9, () => {
      const isSaid = random.isTrue(0.2);
      const userId = isSaid && random.isTrue(0.5) ? '' : user();
      return { anonymousId: anonymousId(), userId, version: version(), isSaid };
    }),
    deletions: several(0, 3, () => ({ userId: user(), version: version() })),
  };
}

function uuidOf(version: number): string {
  return `0190a0a0-0000-7000-8000-${version.toString(16).slice(-12).padStart(12, '0')}`;
}

export function shuffled<Item>(items: readonly Item[], random: Random): Item[] {
  const left = [...items];
  for (let last = left.length - 1; last > 0; last -= 1) {
    const other = random.below(last + 1);
    [left[last], left[other]] = [left[other] as Item, left[last] as Item];
  }
  return left;
}

/** The facts of a visitor that count up to a version, the first one first: those that no earlier deletion of their user hides. */
function factsOf({ facts, deletions }: IdentityGraph, anonymousId: string, until = Infinity): readonly Fact[] {
  const isHidden = (fact: Fact) =>
    deletions.some(({ userId, version }) => userId === fact.userId && version > fact.version && version < until);
  return facts
    .filter((fact) => fact.anonymousId === anonymousId && fact.version <= until && !isHidden(fact))
    .toSorted((one, other) => one.version - other.version);
}

function ownerOf(facts: readonly Fact[]): string {
  return (facts.findLast(({ isSaid }) => isSaid) ?? facts[0])?.userId ?? '';
}

/** Returns the visitors that belong to a user, each with the user. */
function ownersOf(graph: IdentityGraph): ReadonlyMap<string, string> {
  const visitors = [...new Set(graph.facts.map(({ anonymousId }) => anonymousId))];
  const owners = visitors.map((visitor) => [visitor, ownerOf(factsOf(graph, visitor))] as const);
  return new Map(owners.filter(([, owner]) => owner !== ''));
}

/** Returns the events that no deletion has taken, each with the user of its person; empty for nobody. */
export function shownEventsOf(graph: IdentityGraph): readonly (GraphEvent & { readonly person: string })[] {
  const owners = ownersOf(graph);
  const isDeleted = ({ userId, anonymousId, version }: GraphEvent) =>
    graph.deletions.some((deletion) => {
      const isOfDeleted =
        userId === ''
          ? ownerOf(factsOf(graph, anonymousId, deletion.version)) === deletion.userId
          : userId === deletion.userId;
      return isOfDeleted && version <= deletion.version;
    });
  return graph.events
    .filter((event) => !isDeleted(event))
    .map((event) => ({ ...event, person: event.userId || (owners.get(event.anonymousId) ?? '') }));
}

/** Returns the links to others than the owners: visitor, owner and the other user, as one text each. */
export function conflictsOf(graph: IdentityGraph): readonly string[] {
  return [...ownersOf(graph)].flatMap(([visitor, owner]) => {
    const facts = factsOf(graph, visitor);
    if (facts.some(({ isSaid }) => isSaid)) return [];
    const others = new Set(facts.map(({ userId }) => userId).filter((user) => user !== owner));
    return [...others].map((other) => `${visitor} ${owner} ${other}`);
  });
}
