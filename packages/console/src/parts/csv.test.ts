import { expect, test } from 'vitest';
import { csvOf, tableOf, withoutFormulas } from './csv.tsx';

test('a table is saved with its names, numbers and gaps; no text is a formula', () => {
  const rows = [
    ['say "hi",\nfriend', 9.5, null],
    ['=HYPERLINK("x")', -1, 0],
    ['🙂 שלום', 1e21, 2],
  ];
  expect(csvOf({ columns: ['Group', 'Total', '-before'], rows })).toBe(
    '"Group","Total","\'-before"\n"say ""hi"",\nfriend",9.5,\n"\'=HYPERLINK(""x"")",-1,0\n"🙂 שלום",1e+21,2\n',
  );
});

test('records have a column for each of their members, and JSON where a cell would be an object', () => {
  expect(
    tableOf([
      { id: 'a', n: 1, ok: true, tags: ['x'] },
      { id: 'b', more: { x: null }, n: null },
    ]),
  ).toEqual({
    columns: ['id', 'n', 'ok', 'tags', 'more'],
    rows: [
      ['a', 1, 'true', '["x"]', null],
      ['b', null, null, null, '{"x":null}'],
    ],
  });
});

test.each([
  ['"=1+1","a"\n"b","+1"\n', `"'=1+1","a"\n"b","'+1"\n`],
  ['"@SUM(A1)",-1,"-1"\n"\tx","\rx"\n', `"'@SUM(A1)",-1,"'-1"\n"'\tx","'\rx"\n`],
  // Quotes inside of a text, and at its end.
  ['"say ""=x"", ""=y""","a,"\n","\n"",""=z"\n', '"say ""=x"", ""=y""","a,"\n","\n"",""=z"\n'],
])('the CSV %j of query-api has no formulas', (csv, expected) => {
  expect(withoutFormulas(csv)).toBe(expected);
});
