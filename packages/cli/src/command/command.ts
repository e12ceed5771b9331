/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What a command takes from its surroundings. */
export interface Surroundings {
  readonly env: Environment;
  /** The folder of the person who runs the command. Relative paths start there. */
  readonly cwd: string;
}

/** A command of sluice. */
export interface Command {
  /**
   * Returns the text of `--help`.
   *
   * @param name what a person types to run the command
   */
  help(name: string): string;
  /**
   * Runs the command and returns the exit code.
   *
   * @throws {ArgumentsError} when the arguments are wrong
   * @throws {ConfigError} when the environment is wrong
   * @throws the system's error when a file that an argument names cannot be used
   */
  run(args: readonly string[], surroundings: Surroundings): Promise<number>;
}
