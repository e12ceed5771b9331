import { createInterface } from 'node:readline/promises';

/** Asks the operator for confirmation. Resolves with false, after it has said why, when nobody can be asked. */
export async function confirm(prompt: string): Promise<boolean> {
  if (!process.stdin.isTTY) {
    console.log('There is no terminal to ask for confirmation. Run the command again with --yes.');
    return false;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const reply = await terminal.question(prompt).finally(() => terminal.close());
  return /^y(es)?$/i.test(reply.trim());
}
