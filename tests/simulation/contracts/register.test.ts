import { ConsoleDocuments } from '@sluice/query-api/manage/views/console-documents';
import { insertInPlaceOf } from '@sluice/query-api/store/own-rows';
import { KnownWebhooks } from '@sluice/query-api/webhooks/known-webhooks';
import type { Webhook } from '@sluice/query-api/webhooks/webhook';
import { WebhookLeases } from '@sluice/query-api/webhooks/webhook-leases';
import { WebhookRegister } from '@sluice/query-api/webhooks/webhook-register';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { ADMINISTRATOR } from '@sluice/shared/clickhouse/testing/test-accounts';
import { takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { HOW_TO_REPEAT, SEED } from '@sluice/shared/testing/fast-check';
import { expect, inject, test } from 'vitest';
import { registerClient } from '../webhooks/register-client.ts';
import { RegisterTables } from '../webhooks/register-tables.ts';
import { Random } from '../world/random.ts';

const OPERATIONS = 25;
const WORKSPACES = ['v', 'w'];
const KINDS = ['events', 'alert'] as const;
const HOUR_MS = 3_600_000;

const idOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
const ID_OF_VIEW = idOf(99);

/** An id is that of one workspace only. */
const ownerOf = (number: number) => WORKSPACES[number % 2] ?? '';

function webhookOf(number: number): Webhook {
  return {
    ...{
      id: idOf(number),
      workspace: ownerOf(number),
      url: `https://example.com/${number}`,
      kind: KINDS[number % 2] ?? 'events',
      filter: {},
      batched: false,
      content: { of: number },
    },
    ...{ secret: 's', previousSecret: '', previousSecretUntilMs: 0, createdAtMs: 1_700_000_000_000 + number },
  };
}

/** The code of query-api with a ClickHouse, and what it answers without times. */
class Performer {
  readonly #client: ClickHouseClient;
  readonly #register: WebhookRegister;
  readonly #leases: readonly WebhookLeases[];
  readonly #known: KnownWebhooks;
  readonly #views: ConsoleDocuments<{ readonly text: string }>;

  constructor(client: ClickHouseClient) {
    this.#client = client;
    this.#register = new WebhookRegister(client);
    this.#leases = ['one', 'other'].map((holder) => new WebhookLeases(client, holder, HOUR_MS));
    this.#known = new KnownWebhooks(client);
    this.#views = new ConsoleDocuments(client, 'view');
  }

  /** Does one operation, which the random numbers choose, and returns what is answered. */
  async perform(random: Random, number: number): Promise<unknown> {
    const [id, workspace] = [idOf(random.below(4)), random.pick(WORKSPACES)];
    const leases = random.pick(this.#leases);
    const lease = { webhook: id, epoch: 1 + random.below(3) };
    const operation = random.pick([
      'save',
      'change',
      'stale',
      'state',
      'pause',
      'delete',
      'position',
      'claim',
      'view',
    ] as const);
    switch (operation) {
      case 'save':
        return await this.#register.save(webhookOf(random.below(4)));
      case 'change':
        return (
          await this.#register.change(workspace, id, (one) => ({ ...one, url: `https://example.com/c${number}` }))
        )?.webhook;
      case 'stale': {
        const stored = await this.#register.find(workspace, id);
        if (!stored) return 'none';
        await this.#register.change(workspace, id, (one) => ({ ...one, batched: !stored.webhook.batched }));
        const late = {
          workspace_id: workspace,
          id,
          url: 'https://example.com/late',
          filter: '{}',
          changed_at: Date.now() * 1_000,
        };
        return await insertInPlaceOf(stored.rows.webhook, this.#client, 'webhooks', late);
      }
      case 'state': {
        const [state, reason] = random.isTrue(0.5) ? (['paused', 'client'] as const) : (['active', ''] as const);
        const { sinceMs: _, ...changed } = (await this.#register.setState(workspace, id, state, reason))?.state ?? {};
        return changed;
      }
      case 'pause': {
        const stored = await this.#register.find(workspace, id);
        const version = (stored?.rows.state.version ?? 0) - random.below(2);
        return await this.#register.pause(webhookOf(random.below(4)), version, 'gone');
      }
      case 'delete': {
        const stored = await this.#register.find(workspace, id);
        if (stored) await this.#register.delete(stored.webhook);
        return await this.#register.purge();
      }
      case 'position':
        return await this.#client.insert({
          table: 'webhook_positions',
          values: [
            {
              webhook_id: id,
              epoch: lease.epoch,
              sequence: random.below(4),
              position: `p${number}`,
              attempts: number % 2,
            },
          ],
          format: 'JSONEachRow',
        });
      case 'claim':
        if (random.isTrue(0.3)) return await leases.release([lease], random.isTrue(0.5));
        return random.isTrue(0.5) ? await leases.record([lease]) : await leases.claim([lease]);
      case 'view':
        return await this.#changeView(number, random);
    }
  }

  async #changeView(number: number, random: Random): Promise<unknown> {
    const [found] = [await this.#views.find('w', ID_OF_VIEW)];
    if (!found) return await this.#views.save('w', ID_OF_VIEW, { text: 'new' }, 1_700_000_000_000);
    if (random.isTrue(0.1)) return await this.#views.delete([found]);
    return (await this.#views.change('w', ID_OF_VIEW, async () => ({ text: `${number}` })))?.content;
  }

  /** Returns all that can be read. */
  async state(): Promise<unknown> {
    const ids = [0, 1, 2, 3].map(idOf);
    const shown = ({ webhook, state, progress }: Awaited<ReturnType<WebhookRegister['list']>>[number]) => {
      const { failingMs: _, ...stored } = progress ?? { failingMs: 0 };
      return { webhook, state: `${state.state} ${state.reason}`, stored };
    };
    const byKey = <Value>(found: ReadonlyMap<string, Value>) =>
      [...found].sort(([one], [other]) => (one < other ? -1 : 1));
    const changed = await this.#known.look();
    return {
      lists: await Promise.all(WORKSPACES.map(async (one) => (await this.#register.list(one)).map(shown))),
      counts: await Promise.all(WORKSPACES.flatMap((one) => KINDS.map((kind) => this.#register.count(one, kind)))),
      byIds: byKey(await this.#register.byIds(new Map(ids.map((id) => [id, 'w'])))).map(([, stored]) => shown(stored)),
      newest: byKey((await this.#leases[0]?.newest(ids)) ?? new Map()).map(([, lease]) => withSorted(lease)),
      recent: byKey((await this.#leases[0]?.recent()) ?? new Map()).map(([, lease]) => withSorted(lease)),
      instances: await this.#leases[0]?.instances(),
      known: [byKey(this.#known.active), byKey(this.#known.paused), changed.length > 0],
      view: (await this.#views.find('w', ID_OF_VIEW))?.content,
    };
  }
}

function withSorted<Lease extends { readonly holders: readonly string[] }>(lease: Lease): Lease {
  return { ...lease, holders: lease.holders.toSorted() };
}

test('what query-api stores of webhooks and views is answered as by the real ClickHouse', async () => {
  const database = await takeDatabase(inject('clickhouseUrl'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => database.release());
  const options = { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 4 };
  const real = stack.adopt(createClickHouse({ ...database.config, ...ADMINISTRATOR }, options), (client) =>
    client.close(),
  );
  // Microseconds that no two statements share.
  let statements = 0;
  const tables = new RegisterTables(() => Date.now() * 1_000 + (statements++ % 1_000));
  const onReal = new Performer(real);
  const onSimulated = new Performer(registerClient(async (_what, effect) => effect(tables)));
  const [forReal, forSimulated] = [new Random(SEED, 'register'), new Random(SEED, 'register')];
  for (let number = 1; number <= OPERATIONS; number += 1) {
    const answered = await onReal.perform(forReal, number);
    const explanation = `${HOW_TO_REPEAT}, operation ${number}`;
    expect(withoutQueries(await onSimulated.perform(forSimulated, number)), explanation).toEqual(
      withoutQueries(answered),
    );
    expect(await onSimulated.state(), explanation).toEqual(await onReal.state());
  }
});

/** An INSERT answers with its id. */
function withoutQueries(answer: unknown): unknown {
  return answer !== null && typeof answer === 'object' && 'query_id' in answer ? undefined : answer;
}
