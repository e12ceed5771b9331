import { expect } from 'vitest';
import { TooLate } from './until.ts';

/**
 * Reads a value again and again until it matches: `await eventually(() => count()).toBe(2)`. It is vitest's `expect.poll`,
 * whose timeout is in `vitest.config.ts`, and works inside of tests only. In tests that run side by side (`test.concurrent`) it does
 * not: `until` does.
 *
 * @throws {TooLate} from the matcher, when the value does not match in time; its `cause` says what was read last
 */
export function eventually<Value>(
  read: () => Value,
  options?: Parameters<typeof expect.poll>[1],
): ReturnType<typeof expect.poll<Value>> {
  return lateWhenFailed(expect.poll(read, options));
}

function lateWhenFailed<Assertion extends object>(assertion: Assertion): Assertion {
  return new Proxy(assertion, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return isAssertion(member) ? lateWhenFailed(member) : member;
      return async (...expected: unknown[]) => {
        try {
          await member.apply(target, expected);
        } catch (error) {
          throw tooLate(error);
        }
      };
    },
  });
}

/** `.not` is an assertion as well. */
function isAssertion(member: unknown): member is object {
  return typeof member === 'object' && member !== null;
}

/** What the wait failed with last becomes the cause. The stack is that of the test. */
function tooLate(cause: unknown): TooLate {
  const { message, stack = '' } = cause instanceof Error ? cause : new Error(String(cause));
  const late = new TooLate(message, { cause });
  const ofTest = stack.split('\n').filter((line) => !line.includes(import.meta.filename));
  late.stack = ofTest.join('\n');
  return late;
}
