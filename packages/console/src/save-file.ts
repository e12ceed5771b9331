/** Has the browser save a file. */
export function saveFile(name: string, content: Blob): void {
  const href = URL.createObjectURL(content);
  Object.assign(document.createElement('a'), { href, download: name }).click();
  URL.revokeObjectURL(href);
}
