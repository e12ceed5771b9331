import { useState } from 'preact/hooks';
import { access, checkKey, useKey } from './base/base.ts';
import { Problem } from './parts/parts.ts';

/** Asks for a key. The form is never sent: a script reads it. */
export function SignIn() {
  const [error, setError] = useState<Error>();
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const candidate = String(new FormData(event.currentTarget as HTMLFormElement).get('key')).trim();
    try {
      await checkKey(candidate);
      useKey(candidate);
      access.value = 'open';
    } catch (failure) {
      setError(failure as Error);
    }
  };
  return (
    <section class="sign-in">
      <h1>Sign in</h1>
      <p id="key-hint">
        The console reads with an API key of the scope <code>query</code>. It is kept until this tab is closed.
      </p>
      <form onSubmit={submit}>
        <label for="key">API key</label>
        <input id="key" name="key" type="password" autocomplete="off" aria-describedby="key-hint" required />
        <button type="submit">Sign in</button>
      </form>
      {error && <Problem error={error} />}
    </section>
  );
}
