import type { RowMessage } from '@sluice/submissions/rows/message-packing';
import kafkajs, { type CompressionTypes } from 'kafkajs';
import { ByteWriter, varintSize } from './byte-writer.ts';
import { crc32c } from './crc32c.ts';

/** What one request sends to one broker. */
export interface ProduceRequest {
  /** Which replicas must have the records: -1 for all that are in sync. */
  readonly acks: number;
  /** How long the broker waits for them, in milliseconds. */
  readonly timeout: number;
  readonly compression: CompressionTypes;
  readonly topicData: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number; readonly messages: readonly RowMessage[] }[];
  }[];
}

/** More than what a topic, a partition with its record batch, a message and a header take besides their bytes. */
const OVERHEAD_BYTES = 128;

/** Version 2 of record batches, which Kafka has had since 0.11. */
const MAGIC = 2;

/**
 * Encodes a produce request of any version from 3 to 7, but for its header, into one buffer.
 *
 * kafkajs encodes each record, header and batch in a buffer of its own, and copies it again and again: ingest-api takes
 * 16 µs of CPU for an event of 600 bytes then, instead of 11.
 *
 * Source: https://kafka.apache.org/protocol and https://kafka.apache.org/documentation/#recordbatch
 */
export async function encodeProduceRequest(request: ProduceRequest): Promise<Buffer> {
  const { acks, timeout, compression, topicData } = request;
  const writer = new ByteWriter(sizeBound(topicData));
  writer.int16(-1); // no transaction
  writer.int16(acks);
  writer.int32(timeout);
  writer.int32(topicData.length);
  for (const { topic, partitions } of topicData) {
    writer.int16(topic.length);
    writer.ascii(topic);
    writer.int32(partitions.length);
    for (const { partition, messages } of partitions) {
      writer.int32(partition);
      await writeBatch(writer, messages, compression);
    }
  }
  return writer.slice();
}

/** Returns more bytes than the request will be. Compressed records may be larger than they were by a little. */
function sizeBound(topicData: ProduceRequest['topicData']): number {
  let size = OVERHEAD_BYTES;
  for (const { topic, partitions } of topicData) {
    size += OVERHEAD_BYTES + topic.length;
    for (const { messages } of partitions) size += 2 * OVERHEAD_BYTES + recordsBound(messages);
  }
  return size;
}

function recordsBound(messages: readonly RowMessage[]): number {
  let size = 0;
  for (const { headers, value } of messages) {
    size += OVERHEAD_BYTES + Math.ceil(value.length * 1.01);
    for (const [name, text] of Object.entries(headers)) size += OVERHEAD_BYTES + name.length + text.length;
  }
  return size;
}

async function writeBatch(
  writer: ByteWriter,
  messages: readonly RowMessage[],
  compression: CompressionTypes,
): Promise<void> {
  const now = BigInt(Date.now());
  const sizeAt = writer.length;
  writer.int32(0); // the size of the batch
  writer.int64(0n); // the offset, which the broker sets
  writer.int32(0); // the size of what follows
  const start = writer.length;
  writer.int32(0); // the epoch of the leader, which the broker sets
  writer.int8(MAGIC);
  const checksumAt = writer.length;
  writer.int32(0);
  writer.int16(compression);
  writer.int32(messages.length - 1);
  writer.int64(now); // the times of the first and of the last record
  writer.int64(now);
  writer.int64(-1n); // no producer whose records are counted: its id, its epoch, and the number of the first record
  writer.int16(-1);
  writer.int32(-1);
  writer.int32(messages.length);
  if (compression === kafkajs.CompressionTypes.None) writeRecords(writer, messages);
  else writer.bytes(await compressRecords(messages, compression));
  writer.setInt32(sizeAt, writer.length - sizeAt - 4);
  writer.setInt32(start - 4, writer.length - start);
  writer.setInt32(checksumAt, crc32c(writer.slice(checksumAt + 4)) | 0);
}

interface Codec {
  compress(from: { readonly buffer: Buffer }): Promise<Buffer>;
}

async function compressRecords(messages: readonly RowMessage[], compression: CompressionTypes): Promise<Buffer> {
  const writer = new ByteWriter(recordsBound(messages));
  writeRecords(writer, messages);
  const codecs: Readonly<Record<number, () => Codec>> = kafkajs.CompressionCodecs;
  const codec = codecs[compression]?.();
  if (!codec) throw new Error(`there is no codec for compression ${compression}`);
  return await codec.compress({ buffer: writer.slice() });
}

/** Writes records that have no key, and all the time of their batch. */
function writeRecords(writer: ByteWriter, messages: readonly RowMessage[]): void {
  for (const [index, { headers, value }] of messages.entries()) {
    const entries = Object.entries(headers);
    let size = 3 + varintSize(index) + varintSize(value.length) + value.length + varintSize(entries.length);
    for (const [name, text] of entries) {
      size += varintSize(name.length) + name.length + varintSize(text.length) + text.length;
    }
    writer.varint(size);
    writer.int8(0); // no attributes
    writer.varint(0); // how much later than the batch
    writer.varint(index);
    writer.int8(1); // no key: -1 as a varint
    writer.varint(value.length);
    writer.bytes(value);
    writer.varint(entries.length);
    for (const [name, text] of entries) {
      writer.varint(name.length);
      writer.ascii(name);
      writer.varint(text.length);
      writer.ascii(text);
    }
  }
}
