import { Component, type ComponentChildren } from 'preact';
import { ApiError } from '../base/base.ts';

interface ProblemProps {
  readonly error: Error;
  /** Tries again. Default: there is no button for it. */
  readonly onRetry?: () => void;
}

/** Says what went wrong, with every error that query-api has named. */
export function Problem({ error, onRetry }: ProblemProps) {
  const errors = error instanceof ApiError ? error.errors : [];
  return (
    <div class="problem" role="alert">
      <p>{error.message}</p>
      {errors.length > 0 && (
        <ul>
          {errors.map((error) => (
            <li key={error}>{error}</li>
          ))}
        </ul>
      )}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

interface ErrorBoundaryProps {
  /** Names what the children show. After an error they are shown again once it changes. */
  readonly subject: string;
  readonly children: ComponentChildren;
}

interface ErrorBoundaryState {
  readonly error: Error | undefined;
}

/** Shows a page, or what went wrong in it: the rest of the console stays. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, ErrorBoundaryState> {
  override state: ErrorBoundaryState = { error: undefined };

  static override getDerivedStateFromError(error: Error): ErrorBoundaryState {
    return { error };
  }

  override componentDidUpdate({ subject }: ErrorBoundaryProps): void {
    if (this.state.error && subject !== this.props.subject) this.setState({ error: undefined });
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <>
        <h1>This page failed</h1>
        <Problem error={error} />
      </>
    );
  }
}
