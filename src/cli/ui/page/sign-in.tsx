import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { live } from "./live.ts";

/** Asks for a bearer token. The page never keeps it. */
export function SignInPage(): JSX.Element {
  const [problem, setProblem] = useState("");
  const [isAsking, setAsking] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const namespace = useRef<HTMLInputElement>(null);
  const signIn = async (): Promise<void> => {
    setAsking(true);
    const why = await live
      .signIn(field.current?.value ?? "", namespace.current?.value ?? "")
      .catch((error: unknown) => String(error));
    setProblem(why ?? "");
    setAsking(false);
    field.current?.focus();
  };
  return (
    <main class="sign-in">
      <h1>Legation</h1>
      <p>Sign in with a bearer token for the host cluster. You see what its user may read, and nothing more.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void signIn();
        }}
      >
        <input
          ref={field}
          type="password"
          aria-label="Token"
          placeholder="Token"
          autocomplete="off"
          spellcheck={false}
          required
        />
        <input
          ref={namespace}
          aria-label="Namespace"
          placeholder="Namespace, if your rights end with one"
          spellcheck={false}
        />
        <button type="submit" class="main" disabled={isAsking}>
          {isAsking ? "Signing in…" : "Sign in"}
        </button>
      </form>
      <div role="alert">{problem !== "" && <p class="trouble">{problem}</p>}</div>
      <p class="muted">A token for an hour:</p>
      <pre>kubectl create token ACCOUNT -n NAMESPACE --duration 1h</pre>
    </main>
  );
}
