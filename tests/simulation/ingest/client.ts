import type { Operation } from '../../kit/load.ts';
import { SimulatedProcess } from '../world/simulated-process.ts';
import { Draw, type DrawOptions } from './draw.ts';
import type { HttpResponse, IngestPlace } from './ingest-place.ts';
import type { IngestSide } from './ingest-side.ts';
import { deletedUser, deletionRequest, type Submission } from './submission.ts';

/** How often a client sends a request until it is accepted. */
const ATTEMPTS = 5;

/** How long it waits for a response, in milliseconds. */
const PATIENCE_MS = 15_000;

const PAUSE_MS_MAX = 300;

/** Submits one thing after the other, each until it is accepted or the attempts are used up. */
export class Client {
  readonly #side: IngestSide;
  readonly name: string;
  readonly workspace: string;
  readonly operations: Operation[] = [];
  /** The uuids that events were given in responses, by the events' keys. */
  readonly uuids = new Map<string, string>();
  readonly #draw: Draw;
  readonly #process: SimulatedProcess;
  isDone = false;

  constructor(side: IngestSide, options: Omit<DrawOptions, 'now'>) {
    this.#side = side;
    this.name = options.client;
    this.workspace = options.workspace;
    this.#process = new SimulatedProcess(this.name);
    this.#draw = new Draw({ ...options, now: () => side.world.time.dateMs });
  }

  start(untilMs: number): void {
    this.#side.world.time.runAs(this.#process, () => void this.#run(untilMs));
  }

  kill(): void {
    this.#process.kill();
  }

  /** Submits something to each partition of an ingest-api, until all of it is accepted. */
  probe(place: IngestPlace): void {
    this.isDone = false;
    this.#side.world.time.runAs(this.#process, () => void this.#probe(place));
  }

  async #run(untilMs: number): Promise<void> {
    const { world, ingests } = this.#side;
    while (world.time.nowMs < untilMs) {
      await this.#pause(this.#side.random.between(0, PAUSE_MS_MAX));
      await this.#carryOut(this.#draw.next(), ingests);
    }
    this.isDone = true;
  }

  async #probe(place: IngestPlace): Promise<void> {
    // A deletion goes to each partition of events, and changes of many users to each of entities.
    for (const submission of this.#draw.toAllPartitions()) {
      while (!(await this.#carryOut(submission, [place])));
    }
    this.isDone = true;
  }

  /** Returns whether it was accepted. */
  async #carryOut(submission: Submission, places: readonly IngestPlace[]): Promise<boolean> {
    const { oracle, world } = this.#side;
    oracle.begin(submission);
    const operations = submission.actions.map((action): Operation => {
      return { action, at: world.time.dateMs, outcome: 'under way', endedAt: 0, clear: false };
    });
    this.operations.push(...operations);
    const end = (outcome: Operation['outcome'], isClear: boolean) => {
      for (const operation of operations)
        Object.assign(operation, { outcome, endedAt: world.time.dateMs, clear: isClear });
    };
    let { request } = submission;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const response = await this.#attempt({ ...submission, request }, places);
      if (response?.status === 200 || response?.status === 202) {
        oracle.checkAccepted(submission, response);
        this.#keepUuids(submission, response);
        end('accepted', attempt === 1);
        return true;
      }
      if (response?.status === 413 && submission.isTooLarge) {
        end('unknown', false);
        return false;
      }
      if (!response) oracle.addUnheard(submission);
      const before = response && beforeOf(response);
      const user = deletedUser(submission);
      if (before !== undefined && user !== undefined) {
        oracle.limitDeletion(submission, before);
        request = { ...deletionRequest(user, before), headers: submission.request.headers };
      }
      await this.#pause(this.#side.random.between(50, 1_000));
    }
    end('unknown', false);
    return false;
  }

  #keepUuids({ actions }: Submission, { body }: HttpResponse): void {
    const { events = [] } = JSON.parse(body) as { events?: readonly { uuid: string }[] };
    const keys = actions.flatMap((action) => (action.kind === 'events' ? action.events : [])).map(({ key }) => key);
    for (const [index, { uuid }] of events.entries()) this.uuids.set(keys[index] ?? '', uuid);
  }

  /** Returns the response, if one came. */
  async #attempt({ id, request }: Submission, places: readonly IngestPlace[]): Promise<HttpResponse | undefined> {
    const { random, world } = this.#side;
    const place = random.pick(places);
    try {
      const response = await world.network.request(place.name, 'submit', () => place.serve(request), PATIENCE_MS);
      world.note(`${this.name} ${id}: ${response.status} from ${place.name}`);
      this.#check(id, response);
      return response;
    } catch (error) {
      world.note(`${this.name} ${id}: ${(error as Error).message} (${place.name})`);
      return undefined;
    }
  }

  /** What is neither accepted nor to be sent again is wrong: every request is valid. */
  #check(id: string, { status, headers, body }: HttpResponse): void {
    const isRetryable = status === 503 && /^\d+$/.test(String(headers['retry-after']));
    const isAccepted = status === 200 || status === 202;
    const isTooLarge = status === 413 && this.#side.oracle.causes.wasTooLarge;
    if (!isAccepted && !isRetryable && !isTooLarge) this.#side.world.report(`${id} was refused: ${status} ${body}`);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#side.world.time.after(ms, resolve, this.#process));
  }
}

/** Returns the time that a deletion is to be sent again with. */
function beforeOf({ body }: HttpResponse): string | undefined {
  return /before=(\S+?Z)/.exec(body)?.[1];
}
