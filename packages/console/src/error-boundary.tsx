import { Component, type ComponentChildren } from 'preact';
import { Problem } from './problem.tsx';

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
