import { parseJson } from '@sluice/shared/text/json';
import { JsonCursor } from '@sluice/submissions/reading/json-cursor';
import { jsonMembers, jsonObject } from '@sluice/submissions/reading/json-members';
import { Agent } from 'undici';
import type { ExportArguments } from './arguments.ts';
import { type ExportCounts, type ExportEnd, type ExportOptions, requestBody, untilComplete } from './run-export.ts';

/** Users or organizations of one page. */
const PAGE = 100;

/** A line has so many properties at most, and bytes of properties unless it has one alone, so that it can be imported. */
const PROPERTIES_MAX = 500;
const PROPERTIES_BYTES_MAX = 512 * 1_024;

export interface EntitiesExportOptions extends Omit<ExportOptions, 'format'> {
  readonly subject: Exclude<ExportArguments['subject'], 'events'>;
}

/** An export of users or organizations to a file, ordered by identifier: all pages of their list. */
export class EntitiesExport {
  readonly #options: EntitiesExportOptions;
  readonly #counts: ExportCounts = { events: 0, bytes: 0, lastMs: undefined };
  #progressAt = performance.now();
  /** Where the next page begins; undefined for the first one. */
  #cursor: string | undefined;

  constructor(options: EntitiesExportOptions) {
    this.#options = options;
  }

  /** They change while the export runs. Lines are counted as events. */
  get counts(): Readonly<ExportCounts> {
    return this.#counts;
  }

  async run(): Promise<ExportEnd> {
    const { part } = this.#options;
    // No line of the file says where an earlier run has stopped.
    await part.clear();
    const dispatcher = new Agent();
    return await untilComplete(
      this.#options,
      () => this.#receive(dispatcher),
      () => this.#progressAt,
    );
  }

  async #receive(dispatcher: Agent): Promise<void> {
    const { subject, part } = this.#options;
    for (let isLast = false; !isLast; ) {
      const { lines, nextCursor } = readPage(await this.#readPage(dispatcher));
      await part.append(lines);
      this.#counts.events += lines.length;
      if (nextCursor !== null) this.#cursor = nextCursor;
      isLast = nextCursor === null;
    }
    await part.append([Buffer.from(`{"complete":true,"${subject}":${this.#counts.events}}\n`)]);
  }

  async #readPage(dispatcher: Agent): Promise<Buffer> {
    const { url, subject, parameters } = this.#options;
    const cursor = this.#cursor === undefined ? [] : [['cursor', this.#cursor]];
    const query = new URLSearchParams([...parameters, ['limit', String(PAGE)], ...cursor]);
    const address = `${url.origin}${url.pathname.replace(/\/$/, '')}/${subject}?${query}`;
    const chunks: Buffer[] = [];
    for await (const chunk of await requestBody(address, dispatcher, this.#options)) {
      this.#progressAt = performance.now();
      this.#counts.bytes += chunk.length;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }
}

interface Page {
  readonly lines: readonly Buffer[];
  readonly nextCursor: string | null;
}

/** Reads a page. Records keep the bytes that they came in: no digit of a number is lost. */
function readPage(bytes: Buffer): Page {
  const members = jsonMembers(bytes);
  const results = Buffer.from(members.get('results') ?? '[]');
  const records = [...new JsonCursor(results).elements()].map(({ start, end }) => results.subarray(start, end));
  return {
    lines: records.flatMap(linesOf),
    nextCursor: parseJson(String(members.get('nextCursor'))) as string | null,
  };
}

/** Returns the lines of a record: one, or several with a part of the properties each. */
function linesOf(record: Buffer): Buffer[] {
  const members = jsonMembers(record);
  const parts: Map<string, Buffer | string>[] = [new Map()];
  let bytes = 0;
  for (const [name, value] of jsonMembers(Buffer.from(members.get('properties') ?? '{}'))) {
    const size = name.length + value.length;
    const isFull = bytes + size > PROPERTIES_BYTES_MAX || (parts.at(-1)?.size ?? 0) === PROPERTIES_MAX;
    if (isFull && bytes > 0) {
      parts.push(new Map());
      bytes = 0;
    }
    parts.at(-1)?.set(name, value);
    bytes += size;
  }
  return parts.map((properties) =>
    Buffer.concat([jsonObject(new Map([...members, ['properties', jsonObject(properties)]])), LINE_FEED]),
  );
}

const LINE_FEED = Buffer.from('\n');
