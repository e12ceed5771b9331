/** Control characters, formatting such as changes of the writing direction, line and paragraph separators, surrogates. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * Makes a text safe for a terminal, which obeys control characters: a character that is invisible, or that changes how
 * others look, is written as `\uXXXX`. JSON keeps its meaning.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** Returns names as a description lists them: each in backticks, separated by commas. */
export function inCode(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}

/** What looks like a path. Secrets and the contents of files, which are set by mistake in place of a path, do not. */
const PATH = /^(?:[./][^\n]{0,300}|[A-Za-z]:\\[^\n]{0,300})$/;

/** Returns how a variable's path is shown in an error: it may be the secret itself, set by mistake. */
export function shownPath(path: string): string {
  return PATH.test(path) ? path : 'its value, which is no path beginning with / or ./,';
}
