/** What looks like a path. Secrets and the contents of files, which are set by mistake in place of a path, do not. */
const PATH = /^(?:[./][^\n]{0,300}|[A-Za-z]:\\[^\n]{0,300})$/;

/** Returns how a variable's path is shown in an error: it may be the secret itself, set by mistake. */
export function shownPath(path: string): string {
  return PATH.test(path) ? path : 'its value, which is no path beginning with / or ./,';
}
