import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { IModule } from 'dependency-cruiser';

const TESTS = /\.test\.ts$|\/testing\//;
const PRODUCT = /^(?:services|packages)\/[^/]+\/src\/.*\.(?:tsx?|mjs)$/;

const FRAGMENT_LINES_MAX = 60;
const FILE_LINES_MAX = 600;
/** A document with so many paths of code is a map of it. */
const MAP_PATHS_MIN = 30;

/** The fragments that stay files of their own, each with the reason. A new one goes into its neighbor, or gets a line here. */
const REASONS: Readonly<Record<string, string>> = {
  'packages/cli/src/import/posthog-lines.ts': 'One of four formats, each of which is a file.',
  'packages/client/src/uuid.ts': 'A standard of its own, tested alone.',
  'packages/console/src/operate/operate-pages.ts': 'A chunk that a browser loads when a page of the room opens.',
  'packages/shared/src/tracing/sdk.ts': 'Loaded only where a service is traced.',
  'services/query-api/src/store/reading-pace.ts': 'Tested alone, with a clock of the test.',
  'services/query-api/src/store/servers/choose-server.ts': 'Tested alone by properties.',
  'services/writer/src/replay-route.ts': 'A test cannot import its neighbor, which starts the process.',
};

/** The folders whose rooms are counted. */
const HOUSES = [
  'services/query-api/src',
  'services/ingest-api/src',
  'services/writer/src',
  'services/trench-api/src',
  'packages/console/src',
  'packages/shared/src',
  'packages/submissions/src',
  'packages/cli/src',
];

export interface RoomCounts {
  /** What there is to know, in the order of a table. */
  readonly table: readonly (readonly [name: string, figure: string])[];
  /** The paths of fragments without a reason, and of reasons without a fragment. */
  readonly unexplained: readonly string[];
  /** What must not grow, by its name in `rooms.json`. */
  readonly limited: Readonly<Record<string, number>>;
}

/** Counts how the code is divided. `npm run rooms -- --help` explains the words. */
export function countRooms(modules: readonly IModule[], root: string): RoomCounts {
  const product = modules.filter(({ source }) => isProduct(source));
  const linesOf = (path: string) => readFileSync(join(root, path), 'utf8').split('\n').length - 1;
  const lines = new Map(product.map(({ source }) => [source, linesOf(source)]));
  const fragments = fragmentsOf(modules).filter((path) => (lines.get(path) ?? 0) <= FRAGMENT_LINES_MAX);
  const unexplained = [...new Set(fragments).symmetricDifference(new Set(Object.keys(REASONS)))];
  const tested = new Set(modules.filter(({ source }) => TESTS.test(source)).flatMap(importsOf));
  const upwards = product
    .filter(({ source }) => source.startsWith('packages/'))
    .flatMap(importsOf)
    .filter((path) => path.startsWith('services/'));
  const statements = globSync('services/writer/src/**/*.sql', { cwd: root });
  const maps = globSync(['*.md', 'docs/*.md', 'docs/{design,guide,operate}/*.md'], { cwd: root })
    .map(
      (path) => readFileSync(join(root, path), 'utf8').match(/`[\w./<>-]+\.(?:tsx?|mjs|sql|xml|ya?ml)\b/g)?.length ?? 0,
    )
    .filter((paths) => paths >= MAP_PATHS_MIN);
  const houses = HOUSES.map((house) => [house, roomsOf(product, house)] as const);
  return {
    table: [
      ['product files of TypeScript', `${product.length}, median ${median([...lines.values()])} lines`],
      [
        `of more than ${FILE_LINES_MAX} lines`,
        `${[...lines.values()].filter((count) => count > FILE_LINES_MAX).length}`,
      ],
      ['fragments', `${fragments.length}, ${fragments.filter((path) => tested.has(path)).length} with a test`],
      ['SQL files of the writer', `${statements.length}, median ${median(statements.map(linesOf))} lines`],
      ...houses.map(
        ([house, { rooms, floors, arrows, up }]) =>
          [`${house}: rooms, floors, arrows, arrows up`, `${rooms}, ${floors}, ${arrows}, ${up}`] as const,
      ),
      ['imports from packages/ into services/', `${upwards.length}`],
      ['maps of the code', `${maps.length}, ${maps.reduce((sum, paths) => sum + paths, 0)} paths`],
    ],
    unexplained,
    limited: {
      fragments: fragments.length,
      'fragments without a reason, and reasons without a fragment': unexplained.length,
      'imports from packages into services': upwards.length,
      ...Object.fromEntries(houses.map(([house, { up }]) => [`arrows up in ${house}`, up])),
    },
  };
}

function isProduct(path: string): boolean {
  return PRODUCT.test(path) && !TESTS.test(path);
}

function importsOf({ dependencies }: IModule): string[] {
  return dependencies.map(({ resolved }) => resolved);
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0;
}

/** Returns the product files that one file in their folder imports, and no other. What a face passes on is for others. */
function fragmentsOf(modules: readonly IModule[]): string[] {
  const importers = new Map<string, string[]>();
  const passedOn = new Set<string>();
  for (const { source, dependencies } of modules.filter(({ source }) => !TESTS.test(source))) {
    for (const { resolved, dependencyTypes } of dependencies) {
      if (dependencyTypes.includes('export')) passedOn.add(resolved);
      importers.set(resolved, [...(importers.get(resolved) ?? []), source]);
    }
  }
  return [...importers]
    .filter(([path, [first = '', ...others]]) => others.length === 0 && dirname(first) === dirname(path))
    .map(([path]) => path)
    .filter((path) => isProduct(path) && !passedOn.has(path))
    .toSorted();
}

type Arrow = readonly [from: string, to: string];

function roomsOf(product: readonly IModule[], house: string) {
  const own = product.filter(({ source }) => source.startsWith(`${house}/`));
  const roomOf = (path: string) => path.slice(house.length + 1).split('/')[0] ?? '';
  const pairs = own.flatMap((module) =>
    importsOf(module)
      .filter((path) => isProduct(path) && path.startsWith(`${house}/`) && roomOf(path) !== roomOf(module.source))
      .map((path) => `${roomOf(module.source)} ${roomOf(path)}`),
  );
  const arrows = [...new Set(pairs)].map((pair) => pair.split(' ') as [string, string]);
  const rooms = inOrder([...new Set(own.map(({ source }) => roomOf(source)))].toSorted(), arrows);
  const up = upOf(rooms, arrows);
  const floors = new Map<string, number>();
  for (const room of rooms) {
    const below = arrows
      .filter((arrow) => arrow[0] === room && !up.includes(arrow))
      .map(([, to]) => floors.get(to) ?? 0);
    floors.set(room, 1 + Math.max(0, ...below));
  }
  return { rooms: rooms.length, floors: Math.max(0, ...floors.values()), arrows: arrows.length, up: up.length };
}

/** Puts rooms into an order, the lowest first, in which no single move leaves fewer arrows up. */
function inOrder(rooms: readonly string[], arrows: readonly Arrow[]): readonly string[] {
  let order = rooms;
  for (let before = Number.POSITIVE_INFINITY; upOf(order, arrows).length < before; ) {
    before = upOf(order, arrows).length;
    for (const room of rooms) {
      const others = order.filter((other) => other !== room);
      for (const place of rooms.keys()) {
        const tried = others.toSpliced(place, 0, room);
        if (upOf(tried, arrows).length < upOf(order, arrows).length) order = tried;
      }
    }
  }
  return order;
}

/** Returns the arrows from a lower room to a higher one. */
function upOf(order: readonly string[], arrows: readonly Arrow[]): Arrow[] {
  const places = new Map(order.map((room, place) => [room, place]));
  return arrows.filter(([from, to]) => (places.get(to) ?? 0) > (places.get(from) ?? 0));
}
