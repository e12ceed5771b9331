import { expect, test } from 'vitest';
import { csvOf } from './csv.ts';

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
