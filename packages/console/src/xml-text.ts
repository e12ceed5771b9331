/** Returns a text as the content of an element or attribute, without the characters that XML does not have. */
export function escaped(text: string): string {
  return text
    .toWellFormed()
    .replace(/(?![\t\n\r])\p{Cc}|[\uFFFE\uFFFF]/gu, '\uFFFD')
    .replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A name has so many characters at most. */
const NAME_MAX = 80;

/** Returns the beginning of a name as {@link escaped} does, in the direction of its own script. */
export function isolated(name: string): string {
  return escaped(`\u2068${[...name.slice(0, 2 * NAME_MAX)].slice(0, NAME_MAX).join('')}\u2069`);
}
