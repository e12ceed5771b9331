import fc from '@sluice/shared/testing/fast-check';
import { expect, test } from 'vitest';
import { bytesOfBlocks, readBlocks, rowsOf } from './native-blocks.ts';

/** A number of variable length, as ClickHouse writes it. */
function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}

const text = (value: string) => [...varint(Buffer.byteLength(value)), ...Buffer.from(value)];

function column(name: string, type: string, values: readonly (readonly number[])[]): number[] {
  return [...text(name), ...text(type), ...values.flat()];
}

const name = fc.string({ minLength: 1, maxLength: 200 });
const block = fc.array(fc.tuple(fc.string({ maxLength: 300 }), fc.uint8Array({ minLength: 8, maxLength: 8 })), {
  maxLength: 200,
});

test('blocks come back as they were, whole or with some of their columns', () => {
  fc.assert(
    fc.property(fc.array(block, { maxLength: 4 }), name, (blocks, first) => {
      const names = [first, `${first}2`];
      const bytesOf = (wanted: readonly string[]) =>
        blocks.flatMap((rows) => [
          ...[...varint(wanted.length), ...varint(rows.length)],
          ...wanted.flatMap((one) =>
            one === first
              ? column(
                  one,
                  'String',
                  rows.map(([value]) => text(value)),
                )
              : column(
                  one,
                  "DateTime64(3, 'UTC')",
                  rows.map(([, value]) => [...value]),
                ),
          ),
        ]);
      const read = readBlocks(Buffer.from(bytesOf(names)));
      expect(rowsOf(read)).toBe(blocks.flat().length);
      for (const wanted of [names, names.toReversed(), [first], [`${first}2`]])
        expect(Buffer.concat([...bytesOfBlocks(read, wanted)]).equals(Buffer.from(bytesOf(wanted)))).toBe(true);
    }),
  );
});

test('a response that ends early is an error wherever it ends, except between blocks', () => {
  const whole = Buffer.from([...varint(1), ...varint(2), ...column('a', 'String', [text('x'), text('yz')])]);
  for (let end = 1; end < whole.length; end += 1)
    expect(() => readBlocks(whole.subarray(0, end)), String(end)).toThrow('ends amid a block');
  expect(readBlocks(whole)).toHaveLength(1);
});

test('a column of another type is an error, and so is one that is not there', () => {
  const bytes = Buffer.from([...varint(1), ...varint(1), ...column('a', 'LowCardinality(String)', [[0]])]);
  expect(() => readBlocks(bytes)).toThrow('LowCardinality(String)');
  const blocks = readBlocks(Buffer.from([...varint(1), ...varint(1), ...column('a', 'UInt8', [[0]])]));
  expect(() => [...bytesOfBlocks(blocks, ['b'])]).toThrow('no column b');
});
