import type { Random } from '../world/random.ts';
import { SimulatedProcess } from '../world/simulated-process.ts';
import { type Change, History } from './history.ts';
import { WATCHED } from './numbers.ts';
import type { Parts } from './query-api-place.ts';
import type { StoredEvent } from './stored-events.ts';
import type { WebhooksWorld } from './world.ts';

/** How long a client waits for a response, in milliseconds. */
const RESPONSE_MS_MAX = 20_000;

export const WORKSPACE = 'w';

/** What clients know of a webhook. Its name is in its addresses. */
interface KnownWebhook {
  readonly name: string;
  readonly isAlert: boolean;
  readonly filter: Readonly<Record<string, string>>;
  readonly url: History;
  readonly batched: History;
  readonly secret: History;
  /** `paused` or `active`, as clients have asked for. */
  readonly state: History;
  id: string | undefined;
  readonly createdMs: { readonly begun: number; ended: number | undefined };
  /** When a deletion was answered. */
  deletedMs: number | undefined;
  /** Whether a client has asked for a deletion: it may have happened. */
  mayBeDeleted: boolean;
  /** When it was answered that it is paused, and nobody has asked to resume it since. */
  pausedMs: number | undefined;
  /** When the last change to active was asked for, and answered. */
  resumedMs: number;
}

/** What manages a webhook of its kind. */
function operationsOf({ isAlert }: KnownWebhook, { operations, alerts }: Parts) {
  return isAlert ? alerts : operations;
}

/** A saved view with two members that clients change apart from each other. */
interface KnownView {
  readonly id: string;
  readonly members: Readonly<Record<'a' | 'b', History>>;
  mayBeDeleted: boolean;
  isDeleted: boolean;
}

/** Clients that create, change and delete webhooks and views, at once, through any query-api. */
export class Clients {
  readonly #world: WebhooksWorld;
  readonly #random: Random;
  readonly #webhooks = new Map<string, KnownWebhook>();
  readonly #views: KnownView[] = [];
  /** Whether somebody resumes a webhook that is seen to fail. */
  resumesFailing = false;
  #sent = 0;
  /** Requests that have no answer yet. */
  #open = 0;

  constructor(world: WebhooksWorld, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  get names(): readonly string[] {
    return [...this.#webhooks.keys()];
  }

  /** Does something. */
  act(): void {
    const choice = this.#random.next();
    const known = this.#pick();
    if (!known || (choice < 0.12 && this.#webhooks.size < 5)) return void this.#create();
    if (choice < 0.36) return void this.#change(known);
    if (choice < 0.48) return void this.#rotate(known);
    if (choice < 0.6) return void this.#pause(known);
    if (choice < 0.76) return void this.resume(known.name);
    if (choice < 0.79) return void this.#delete(known);
    return void this.#changeView();
  }

  create(): void {
    void this.#create();
  }

  async #create(): Promise<void> {
    const { time } = this.#world;
    this.#sent += 1;
    const name = `hook-${this.#sent}`;
    const url = `http://receiver/${name}/0`;
    const isAlert = this.#random.isTrue(0.3);
    const isBatched = !isAlert && this.#random.isTrue(0.3);
    const known: KnownWebhook = {
      ...{ name, isAlert, filter: !isAlert && this.#random.isTrue(0.4) ? { event: 'e0' } : {} },
      ...{ url: new History(), batched: new History(), secret: new History(), state: new History() },
      ...{
        id: undefined,
        createdMs: { begun: time.nowMs, ended: undefined },
        deletedMs: undefined,
        mayBeDeleted: false,
      },
      ...{ pausedMs: undefined, resumedMs: 0 },
    };
    this.#webhooks.set(name, known);
    const changes = [
      known.url.begin(url, time.nowMs),
      known.batched.begin(String(isBatched), time.nowMs),
      known.state.begin('active', time.nowMs),
    ] as const;
    const secret = known.secret.begin(undefined, time.nowMs);
    const created = await this.#ask(`create ${name}`, ({ operations, alerts }) =>
      isAlert
        ? alerts.create(WORKSPACE, { url, content: WATCHED })
        : operations.create(WORKSPACE, { url, filter: known.filter, batched: isBatched }),
    );
    if (created.kind !== 'done') return;
    known.id = created.value.id;
    known.createdMs.ended = time.nowMs;
    for (const [index, history] of [known.url, known.batched, known.state].entries()) {
      history.end(changes[index] as Change, time.nowMs);
    }
    known.secret.end(secret, time.nowMs, created.value.secret);
  }

  async #change(known: KnownWebhook): Promise<void> {
    const { time } = this.#world;
    const { id, name } = known;
    if (id === undefined) return;
    this.#sent += 1;
    const isOfUrl = known.isAlert || this.#random.isTrue(0.6);
    const url = `http://receiver/${name}/${this.#sent}`;
    const batched = this.#random.isTrue(0.5);
    const [history, value] = isOfUrl ? [known.url, url] : [known.batched, String(batched)];
    const change = history.begin(value, time.nowMs);
    const outcome = await this.#ask(`change ${name} to ${value}`, (parts) =>
      operationsOf(known, parts).change(WORKSPACE, id, isOfUrl ? { url } : { batched }),
    );
    this.#note(history, change, outcome.kind);
  }

  async #rotate(known: KnownWebhook): Promise<void> {
    const { time } = this.#world;
    const { id, name } = known;
    if (id === undefined) return;
    const change = known.secret.begin(undefined, time.nowMs);
    const outcome = await this.#ask(`rotate ${name}`, (parts) => operationsOf(known, parts).rotate(WORKSPACE, id));
    if (outcome.kind === 'done') known.secret.end(change, time.nowMs, outcome.value.secret);
    else if (outcome.kind === 'refused') known.secret.drop(change);
  }

  async #pause(known: KnownWebhook): Promise<void> {
    const { time } = this.#world;
    const { id, name } = known;
    if (id === undefined) return;
    const change = known.state.begin('paused', time.nowMs);
    const begunMs = time.nowMs;
    const outcome = await this.#ask(`pause ${name}`, (parts) =>
      operationsOf(known, parts).change(WORKSPACE, id, { state: 'paused' }),
    );
    this.#note(known.state, change, outcome.kind);
    if (outcome.kind === 'done' && known.resumedMs < begunMs) known.pausedMs = time.nowMs;
  }

  /** An attempt has failed. Somebody may see that, and resume the webhook. */
  noteFailure(name: string): void {
    if (!this.resumesFailing || !this.#random.isTrue(0.3)) return;
    this.#world.time.after(this.#random.between(0, 1_500), () => void this.resume(name));
  }

  /** Lets a webhook be delivered again. Returns whether that was answered. */
  async resume(name: string): Promise<boolean> {
    const { time } = this.#world;
    const known = this.#webhooks.get(name);
    const id = known && this.idOf(name);
    if (!known || id === undefined) return true;
    known.pausedMs = undefined;
    known.resumedMs = time.nowMs;
    const change = known.state.begin('active', time.nowMs);
    const isChange = this.#random.isTrue(0.3);
    const outcome = await this.#ask(`resume ${name}`, async (parts) => {
      const operations = operationsOf(known, parts);
      if (isChange) await operations.change(WORKSPACE, id, { state: 'active' });
      else await operations.resume(WORKSPACE, id);
    });
    known.pausedMs = undefined;
    known.resumedMs = time.nowMs;
    this.#note(known.state, change, outcome.kind);
    return outcome.kind === 'done';
  }

  async #delete(known: KnownWebhook): Promise<void> {
    const { id, name } = known;
    if (id === undefined) return;
    known.mayBeDeleted = true;
    const outcome = await this.#ask(`delete ${name}`, (parts) => operationsOf(known, parts).delete(WORKSPACE, id));
    if (outcome.kind === 'done') known.deletedMs ??= this.#world.time.nowMs;
  }

  async #changeView(): Promise<void> {
    const { time } = this.#world;
    const view = this.#views.length === 0 ? undefined : this.#random.pick(this.#views);
    this.#sent += 1;
    const value = String(this.#sent);
    if (!view || (this.#views.length < 3 && this.#random.isTrue(0.2))) return await this.#saveView(value);
    if (this.#random.isTrue(0.05)) return await this.#deleteView(view);
    const member = this.#random.pick(['a', 'b'] as const);
    const history = view.members[member];
    const change = history.begin(value, time.nowMs);
    const outcome = await this.#ask(`change a view: ${member} is ${value}`, async ({ views }) => {
      const changed = await views.change(WORKSPACE, view.id, async (content) => ({ ...content, [member]: value }));
      if (!changed && !view.mayBeDeleted) this.#world.report(`the view ${view.id} is not found`);
      return changed;
    });
    if (outcome.kind === 'done' && outcome.value === undefined) history.drop(change);
    else this.#note(history, change, outcome.kind);
  }

  async #saveView(value: string): Promise<void> {
    const { time } = this.#world;
    const id = `00000000-0000-4000-8000-${value.padStart(12, '0')}`;
    const view: KnownView = {
      ...{ id, members: { a: new History(), b: new History() }, mayBeDeleted: false, isDeleted: false },
    };
    const changes = [view.members.a.begin(value, time.nowMs), view.members.b.begin(value, time.nowMs)] as const;
    const outcome = await this.#ask('save a view', ({ views }) =>
      views.save(WORKSPACE, id, { a: value, b: value }, time.dateMs),
    );
    if (outcome.kind !== 'done') return;
    view.members.a.end(changes[0], time.nowMs);
    view.members.b.end(changes[1], time.nowMs);
    this.#views.push(view);
  }

  async #deleteView(view: KnownView): Promise<void> {
    view.mayBeDeleted = true;
    const outcome = await this.#ask('delete a view', async ({ views }) => {
      const found = await views.find(WORKSPACE, view.id);
      if (found) await views.delete([found]);
    });
    if (outcome.kind === 'done') view.isDeleted = true;
  }

  #note(history: History, change: Change, outcome: 'done' | 'refused' | 'unknown'): void {
    if (outcome === 'done') history.end(change, this.#world.time.nowMs);
    // A change of two rows may have been made before it was refused; but not one of a webhook that is not there.
    else if (outcome === 'refused') history.drop(change);
  }

  /** Asks a query-api. `refused`: there is no such thing any more. `unknown`: it may have happened, or still do. */
  async #ask<Value>(what: string, work: (parts: Parts) => Promise<Value>) {
    const { time, places, network } = this.#world;
    const place = this.#random.pick(places);
    this.#open += 1;
    const process = new SimulatedProcess('client');
    try {
      const asking = () => network.request(place.name, 'http', () => place.serve(work), RESPONSE_MS_MAX);
      const value = await time.runAs(process, asking);
      this.#world.note(`client: ${what}: done`);
      return { kind: 'done', value } as const;
    } catch (error) {
      const { message, code = '' } = error as { readonly message: string; readonly code?: string };
      this.#world.note(`client: ${what}: ${code} ${message}`);
      return { kind: code === 'not_found' ? 'refused' : 'unknown' } as const;
    } finally {
      this.#open -= 1;
    }
  }

  get isIdle(): boolean {
    return this.#open === 0;
  }

  #pick(): KnownWebhook | undefined {
    const known = [...this.#webhooks.values()];
    return known.length === 0 ? undefined : this.#random.pick(known);
  }

  /** Returns the id of a webhook; undefined if none is stored, or it is deleted. */
  idOf(name: string): string | undefined {
    const known = this.#webhooks.get(name);
    if (!known) return undefined;
    const stored = this.#stored(name);
    return known.id ?? (stored?.['id'] as string | undefined);
  }

  #stored(name: string) {
    const isOf = (url: unknown) => String(url).startsWith(`http://receiver/${name}/`);
    return this.#world.tables.final('webhooks').find((row) => isOf(row['url']) && !row['is_deleted']);
  }

  knowsSecret(name: string, secret: string): boolean {
    return this.#webhooks.get(name)?.secret.has(secret) ?? false;
  }

  isAlert(name: string): boolean {
    return this.#webhooks.get(name)?.isAlert ?? false;
  }

  /** Whether a webhook has to get an event. */
  wants(name: string, event: StoredEvent): boolean {
    const { ended } = this.#webhooks.get(name)?.createdMs ?? {};
    return ended !== undefined && event.storedMs > ended && this.mayWant(name, event);
  }

  /** Whether a webhook may get an event. */
  mayWant(name: string, event: StoredEvent): boolean {
    const known = this.#webhooks.get(name);
    if (!known || known.isAlert || event.storedMs < known.createdMs.begun) return false;
    return known.filter['event'] === undefined || known.filter['event'] === event.event;
  }

  /**
   * Checks that a webhook may still be delivered, to this address and with these secrets: an instance that cannot read goes on as
   * before until its leases are over.
   */
  checkAttempt(name: string, address: string, secrets: readonly string[]): void {
    const { time, graceMs } = this.#world;
    const known = this.#webhooks.get(name);
    if (!known) return;
    const { deletedMs, pausedMs, url, secret } = known;
    const beforeMs = time.nowMs - graceMs;
    for (const [what, sinceMs] of [['deleted', deletedMs] as const, ['paused', pausedMs] as const]) {
      if (sinceMs !== undefined && sinceMs < beforeMs)
        this.#world.report(`${name} is sent something long after it was ${what}`);
    }
    if (url.isOver(address, beforeMs)) this.#world.report(`${name} is sent to ${address} long after that was changed`);
    if (secrets.every((one) => secret.isOver(one, beforeMs)))
      this.#world.report(`${name} is signed with a secret long after that was rotated`);
  }

  /** Returns the name of a webhook. */
  nameOf(id: string): string | undefined {
    return this.names.find((name) => this.idOf(name) === id);
  }

  /** Returns those that have to be delivered in the end. */
  get standing(): readonly string[] {
    return this.names.filter((name) => this.#stored(name) !== undefined);
  }

  isPaused(name: string): boolean {
    const id = this.idOf(name);
    return this.#world.tables
      .final('webhook_states')
      .some((row) => row['webhook_id'] === id && row['state'] === 'paused');
  }

  /** Checks whether webhooks are paused as clients have asked, before any of them is resumed in the end. */
  checkStates(): void {
    const states = new Map(this.#world.tables.final('webhook_states').map((row) => [row['webhook_id'], row]));
    for (const name of this.standing) {
      const row = states.get(this.idOf(name));
      const value = row?.['state'] === 'paused' ? 'paused' : 'active';
      const { state } = this.#webhooks.get(name) as KnownWebhook;
      // A deliverer may pause it by itself.
      if (value === 'paused' && row?.['reason'] !== 'client') continue;
      if (!state.mayEndWith(value)) this.#world.report(`${name} is ${value}, of ${state.describe()}`);
    }
  }

  /** Checks what is stored in the end. */
  checkEnd(): void {
    for (const known of this.#webhooks.values()) this.#checkWebhook(known);
    const documents = this.#world.tables.final('console_documents').filter((row) => !row['is_deleted']);
    for (const { id, members, isDeleted, mayBeDeleted } of this.#views) {
      const row = documents.find((one) => one['id'] === id);
      if (row && isDeleted) this.#world.report(`the view ${id} is not deleted`);
      if (!row && !mayBeDeleted) this.#world.report(`the view ${id} is lost`);
      const content = row && (JSON.parse(row['content'] as string) as Record<'a' | 'b', string>);
      for (const member of ['a', 'b'] as const) {
        if (content && !members[member].mayEndWith(content[member]))
          this.#world.report(`${member} of a view is ${content[member]}, of ${members[member].describe()}`);
      }
    }
  }

  #checkWebhook({ name, id, url, batched, secret, deletedMs, mayBeDeleted }: KnownWebhook): void {
    const row = this.#stored(name);
    if (row && deletedMs !== undefined) this.#world.report(`${name} is not deleted`);
    if (!row && id !== undefined && !mayBeDeleted) this.#world.report(`${name} is lost`);
    if (!row) return;
    for (const [column, history] of Object.entries({ url, batched, secret })) {
      const value = String(row[column]);
      if (!history.mayEndWith(value)) this.#world.report(`${column} of ${name} is ${value}, of ${history.describe()}`);
    }
  }
}
