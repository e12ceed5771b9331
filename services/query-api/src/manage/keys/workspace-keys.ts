import { unauthorized } from '@sluice/shared/http/authentication';
import { type InputError, Problem, parseBody } from '@sluice/shared/http/problem';
import {
  createKey,
  type KeyEntry,
  KeysFileChanges,
  KeysFileError,
  keyName,
  rateLimit,
  readKeysFile,
  SCOPES,
  type Scope,
} from '@sluice/shared/keys/keys-file';
import { z } from 'zod';
import { KEYS_PER_WORKSPACE_MAX } from '../../http/http.ts';

/** The body of `POST /keys`. */
export const newKeySchema = z
  .strictObject({
    name: keyName.optional().meta({ description: 'What the key is for. Default: none.' }),
    scopes: z
      .array(z.enum(SCOPES, `must be one of ${SCOPES.join(', ')}`))
      .min(1, 'must name a scope')
      .transform((given) => SCOPES.filter((scope) => given.includes(scope)))
      .meta({ description: 'What the key may do. A key can give only scopes that it has itself.' }),
    rateLimit: rateLimit.optional().meta({
      description:
        'How many events a second the key may submit, and how many queries a second it may send. Not more than the key that creates it; default: as that one.',
    }),
  })
  .meta({ id: 'NewKey' });

export type NewKey = z.output<typeof newKeySchema>;

/** @throws {Problem} `invalid_request`, naming every error */
export function parseNewKey(body: unknown): NewKey {
  return parseBody(newKeySchema, body);
}

/** A key as responses show it: neither the key nor its hash. */
export interface KeyRecord {
  readonly id: string;
  readonly name: string | null;
  readonly scopes: readonly Scope[];
  readonly rateLimit: number | null;
  readonly createdAt: string | null;
  /** Whether it is the key of the request. */
  readonly current: boolean;
}

/** The key of a request. */
export type ActingKey = Pick<KeyEntry, 'hash' | 'workspace'>;

export interface WorkspaceKeysOptions {
  /** What the keys file holds. */
  readonly path: string;
  readonly isChangeable: boolean;
  /** The rate limit of keys that have none of their own. Default: none. */
  readonly rateLimitDefault: number | undefined;
}

/** How a file cannot be written where it is mounted to read only, alone or with its folder, or belongs to someone else. */
const READ_ONLY: ReadonlySet<string | undefined> = new Set(['EROFS', 'EACCES', 'EPERM', 'EBUSY', 'EXDEV']);

/** Seconds. */
const RETRY_AFTER = 5;

/**
 * The keys of one workspace in the keys file. Each change looks at the acting key in the file itself, while no other process
 * changes it: a key that was revoked a moment ago creates no other key, although its service may still accept it.
 *
 * All methods throw Problems: `keys_unavailable` when the file cannot be used now. Those that change it also throw
 * `keys_read_only`, `unauthorized` and `missing_scope`.
 */
export class WorkspaceKeys {
  readonly #options: WorkspaceKeysOptions;
  readonly #changes: KeysFileChanges;

  constructor(options: WorkspaceKeysOptions) {
    this.#options = options;
    this.#changes = new KeysFileChanges(options.path);
  }

  /** Whether keys can be created and revoked, as far as the configuration says. */
  get isChangeable(): boolean {
    return this.#options.isChangeable;
  }

  /** Returns them as they are in the file, those that were added last at the end. */
  async list(acting: ActingKey): Promise<readonly KeyRecord[]> {
    const keys = await readKeysFile(this.#options.path).catch(unusable);
    return keys.filter(({ workspace }) => workspace === acting.workspace).map((entry) => recordOf(entry, acting));
  }

  /** Returns the new key, which is not stored anywhere. */
  async create(acting: ActingKey, given: NewKey): Promise<KeyRecord & { readonly key: string }> {
    let created: ReturnType<typeof createKey> | undefined;
    await this.#change(acting, (own, all) => {
      requireScopes(own, given.scopes);
      const perSecond = this.#rateLimitOf(own, given.rateLimit);
      const count = all.filter(({ workspace }) => workspace === own.workspace).length;
      if (count >= KEYS_PER_WORKSPACE_MAX) throw tooMany();
      created = createKey({
        ...{ workspace: own.workspace, scopes: given.scopes, createdAt: new Date().toISOString() },
        ...(given.name !== undefined && { name: given.name }),
        ...(perSecond !== undefined && { rateLimit: perSecond }),
      });
      return [...all, created.entry];
    });
    if (!created) throw new Error('the keys file was changed without a key');
    return { ...recordOf(created.entry, acting), key: created.key };
  }

  /** @throws {Problem} `not_found`; `invalid_request` for the acting key itself, so that one that may undo it remains */
  async revoke(acting: ActingKey, id: string): Promise<void> {
    await this.#change(acting, (own, all) => {
      const isMeant = (key: KeyEntry) => key.workspace === own.workspace && key.id === id;
      const meant = all.filter(isMeant);
      if (meant.length === 0) throw new Problem('not_found', 'The workspace has no such key.');
      if (meant.includes(own)) throw refused({ path: 'id', code: 'own_key', message: 'is the key of this request' });
      return all.filter((key) => !isMeant(key));
    });
  }

  async #change(
    acting: ActingKey,
    change: (own: KeyEntry, all: readonly KeyEntry[]) => readonly KeyEntry[],
  ): Promise<void> {
    if (!this.#options.isChangeable) throw readOnly();
    const work = this.#changes.make((content) => {
      const own = content.keys.find(({ hash }) => hash === acting.hash);
      if (!own) throw unauthorized('The API key is not known.');
      if (!own.scopes.includes('admin')) throw new Problem('missing_scope', 'The API key lacks the scope "admin".');
      return { ...content, keys: change(own, content.keys) };
    });
    await work.catch(unusable);
  }

  /** Returns the rate limit of a new key: no key can give more than it has. */
  #rateLimitOf(own: KeyEntry, given: number | undefined): number | undefined {
    const { rateLimitDefault } = this.#options;
    const max = own.rateLimit ?? rateLimitDefault;
    if (given === undefined) return own.rateLimit;
    if (max === undefined || given <= max) return given;
    const message = `must be at most ${max}, the limit of the key that creates it`;
    throw refused({ path: 'rateLimit', code: 'too_big', message });
  }
}

function recordOf({ id, name, scopes, rateLimit, createdAt, hash }: KeyEntry, acting: ActingKey): KeyRecord {
  const given = { name: name ?? null, rateLimit: rateLimit ?? null, createdAt: createdAt ?? null };
  return { id, scopes, ...given, current: hash === acting.hash };
}

/** @throws {Problem} `missing_scope`, naming every scope that the key lacks */
function requireScopes(own: KeyEntry, scopes: readonly Scope[]): void {
  const missing = scopes.filter((scope) => !own.scopes.includes(scope)).map((scope) => `"${scope}"`);
  if (missing.length === 0) return;
  throw new Problem('missing_scope', `The API key lacks the scope ${missing.join(' and ')}, so it cannot give it.`);
}

function refused(error: InputError): Problem {
  return new Problem('invalid_request', 'The request has an error.', { errors: [error] });
}

function tooMany(): Problem {
  const message = `must be ${KEYS_PER_WORKSPACE_MAX} at most; revoke one`;
  return refused({ path: 'keys', code: 'too_many', message });
}

function readOnly(cause?: unknown): Problem {
  const detail = 'This service may not change the keys file here; the operator does, with "sluice keys".';
  return new Problem('keys_read_only', detail, { cause });
}

/** Says of a keys file why it cannot be used; other errors stay what they are. */
function unusable(cause: unknown): never {
  if (!(cause instanceof KeysFileError)) throw cause;
  if (READ_ONLY.has(cause.writeCode)) throw readOnly(cause);
  const detail = 'The keys file cannot be used now; send the request again.';
  throw new Problem('keys_unavailable', detail, { retryAfter: RETRY_AFTER, cause });
}
