// What is shown to who is not known: where a key comes from, and a field for a token.

import { useState } from "preact/hooks";
import { signIn, tokens, wrong } from "./live";

export function DoorScreen() {
  const [token, setToken] = useState("");
  return (
    <>
      <h1>Who are you?</h1>
      {wrong.value && <p class="warn" role="alert">{wrong.value}</p>}
      {tokens()
        ? (
          <form class="bar" onSubmit={(e) => { e.preventDefault(); signIn(token); }}>
            <label>token <input type="password" autocomplete="off" value={token} onInput={(e) => setToken(e.currentTarget.value)} /></label>
            <button type="submit" disabled={!token.trim()}>enter</button>
            <span class="quiet">It is kept for this tab alone. Who looks after this host makes one by <code>trainyard token create</code>.</span>
          </form>
        )
        : <p>Open a link that <code>trainyard ui</code> prints. It holds once, for 10 minutes; Enter there prints another.</p>}
    </>
  );
}
