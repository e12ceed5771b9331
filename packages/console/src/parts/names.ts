import { signal } from '@preact/signals';
import { getJson, joinList, key, type NamedEntity, type Names } from '../base/base.ts';

/** Where users and organizations are in the API. */
export type EntityPath = 'users' | 'organizations';

/** As many as a request may ask for, of each kind. */
const IDS_MAX = 100;

/** How long a name is not asked for again, in milliseconds. */
const KEPT_MS = 60_000;

interface Known {
  readonly name: NamedEntity | undefined;
  readonly askedAtMs: number;
}

/** What is known of whom, with `users` or `organizations` before the identifier; of nobody else but the workspace of the key. */
let known = new Map<string, Known>();
let knownBy = '';

/** What nobody has asked for yet. */
let wanted = new Map<string, { readonly path: EntityPath; readonly id: string }>();

/** Grows whenever there are more names. */
const changes = signal(0);

/**
 * Returns what a user or an organization is called; `undefined` while that is not known, and where there is no name. Who calls it
 * while being drawn is drawn again when it is known: all that a page shows are asked for together.
 */
export function nameOfEntity(path: EntityPath, id: string): NamedEntity | undefined {
  void changes.value;
  if (knownBy !== key.value) {
    known = new Map();
    knownBy = key.value;
  }
  const place = `${path} ${id}`;
  const found = known.get(place);
  if ((!found || Date.now() - found.askedAtMs > KEPT_MS) && id !== '') {
    known.set(place, { name: found?.name, askedAtMs: Date.now() });
    if (wanted.size === 0) queueMicrotask(() => void ask());
    wanted.set(place, { path, id });
  }
  return found?.name;
}

/** Has all names asked for again: they are made of other properties now. */
export function forgetNames(): void {
  known = new Map();
  changes.value += 1;
}

/** Without an answer, identifiers stay what is shown. */
async function ask(): Promise<void> {
  const all = [...wanted.values()];
  wanted = new Map();
  const asked = knownBy;
  const ofPath = (path: EntityPath) => all.filter((one) => one.path === path).map(({ id }) => id);
  const [users, organizations] = [ofPath('users'), ofPath('organizations')];
  while (users.length > 0 || organizations.length > 0) {
    const query = new URLSearchParams();
    for (const [path, ids] of [
      ['users', users],
      ['organizations', organizations],
    ] as const) {
      const some = takeSome(ids);
      if (some.length > 0) query.set(path, joinList(some));
    }
    try {
      const names = await getJson<Names>(`names?${query}`, AbortSignal.timeout(30_000));
      if (asked !== key.value) return;
      remember('users', names.users);
      remember('organizations', names.organizations);
      changes.value += 1;
    } catch {
      return;
    }
  }
}

/** An address has a length. */
const CHARACTERS_MAX = 2_000;

/** Takes the first identifiers that fit into a request off a list. One at least, which may be too long to be asked for. */
function takeSome(ids: string[]): string[] {
  let characters = 0;
  const end = ids.findIndex((id, index) => {
    characters += encodeURIComponent(id).length;
    return index > 0 && (index >= IDS_MAX || characters > CHARACTERS_MAX);
  });
  return ids.splice(0, end < 0 ? ids.length : end);
}

function remember(path: EntityPath, names: readonly NamedEntity[]): void {
  for (const name of names) known.set(`${path} ${name.id}`, { name, askedAtMs: Date.now() });
}
