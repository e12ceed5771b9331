import { createInterface } from 'node:readline/promises';

/** Where the operator reads, and is asked. */
export interface Terminal {
  print(line: string): void;
  /** Asks the operator for confirmation. Resolves with false when nobody can be asked. */
  confirm(prompt: string): Promise<boolean>;
}

/** The terminal of this process. */
export const TERMINAL: Terminal = {
  print: (line) => console.log(line),
  async confirm(prompt) {
    if (!process.stdin.isTTY) {
      console.log('There is no terminal to ask for confirmation. Run the command again with --yes.');
      return false;
    }
    const terminal = createInterface({ input: process.stdin, output: process.stdout });
    const reply = await terminal.question(prompt).finally(() => terminal.close());
    return /^y(es)?$/i.test(reply.trim());
  },
};
