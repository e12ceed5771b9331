/** Numbers in [0, 1) from a seed. */
export type Random = () => number;

export function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[Math.floor(random() * items.length)] as Item;
}

/** A whole number from 0 up to, and without, `end`. */
export function below(random: Random, end: number): number {
  return Math.floor(random() * end);
}

/**
 * Characters that are expensive to escape, encode, compare, hash or print. Each is one code point that UTF-8 can hold, so a
 * text has as many code points as it has of them.
 */
const CHARACTERS = {
  letters: ['a'],
  apostrophes: ["'"],
  backslashes: ['\\'],
  quotes: ['"'],
  commas: [',', '\\'],
  percents: ['%', '_'],
  controls: ['\u0001', '\u001f', '\n', '\t'],
  zeros: ['\0'],
  brackets: ['{', '}', '[', ']'],
  astral: ['\u{1f600}', '\u{10ffff}'],
  combining: ['e', '\u0301', '\u0308'],
  lines: ['\u2028', '\u2029', '\ufeff'],
  digits: ['0', '9'],
  markup: ['<', '&', '>'],
} as const;

export type Flavour = keyof typeof CHARACTERS;

export const FLAVOURS = Object.keys(CHARACTERS) as readonly Flavour[];

/** Flavours without control characters: a header, and some parameters, take no others. */
export const PRINTABLE: readonly Flavour[] = FLAVOURS.filter(
  (flavour) => flavour !== 'zeros' && flavour !== 'controls',
);

/** A text of so many code points. Texts of one flavour and length differ only in the digits at their end. */
export function textOf(flavour: Flavour, codePoints: number, index = 0): string {
  const suffix = index === 0 ? '' : String(index);
  const characters = CHARACTERS[flavour];
  const length = Math.max(codePoints - suffix.length, 0);
  const pattern = characters.join('');
  const whole = pattern.repeat(Math.floor(length / characters.length));
  return `${whole}${characters.slice(0, length % characters.length).join('')}${suffix}`.slice(0, 2 * codePoints);
}

/** JSON numbers at the borders of what 64-bit floats, integers and their texts can be. */
export const NUMBERS = [
  '0',
  '-0',
  '1e308',
  '-1.7976931348623157e308',
  '5e-324',
  '1e-400',
  '9007199254740993',
  '18446744073709551615',
  '-9223372036854775808',
  '1729384756102938475',
  '3.141592653589793238',
  '1e20',
  '0.1e1',
] as const;
