// A button that changes something, and the dialog before it: what it is about, what is lost, who gains, and the command
// that does the same. Nothing shows as done before the stream says that it is durable.

import { useEffect, useRef, useState } from "preact/hooks";
import { ask, Problem } from "./live";

interface Props {
  verb: string;
  path: string;
  about: string; // what it is done to
  command: string;
  loses: string;
  gains?: string;
  tag?: string; // how the job stood when this was shown
  body?: unknown;
  label?: string;
}

export function Act(p: Props) {
  const box = useRef<HTMLDialogElement>(null);
  const [open, setOpen] = useState(false), [state, setState] = useState<"" | "asked" | "taken">(""), [error, setError] = useState("");
  const [tag, setTag] = useState(p.tag); // of when the dialog opened: a job that changes meanwhile is not changed
  const now = useRef(p.tag);
  now.current = p.tag;
  useEffect(() => {
    if (open) box.current?.showModal();
  }, [open]);
  const show = () => {
    setTag(p.tag);
    setState("");
    setError("");
    setOpen(true);
  };
  const shut = () => {
    box.current?.close();
    setOpen(false);
  };
  const act = async () => {
    setState("asked");
    setError("");
    try {
      await ask(p.path, { post: true, tag, body: p.body });
      setState("taken");
      shut();
    } catch (e) {
      const changed = e instanceof Problem && e.status === 412;
      if (changed) setTag(now.current); // pressed again, it is about how the job stands now
      setState("");
      setError((e instanceof Error ? e.message : String(e)) + (changed ? ". Nothing was done; press again to do it as the job stands now." : ""));
    }
  };
  return (
    <>
      <button data-verb={p.verb} onClick={show}>{p.label ?? p.verb}</button>
      {open && (
        <dialog ref={box} onClose={() => setOpen(false)} aria-label={`${p.verb} ${p.about}`}>
          <h2>{p.label ?? p.verb}: <bdi>{p.about}</bdi></h2>
          <p>{p.loses}</p>
          {p.gains && <p>{p.gains}</p>}
          <p class="quiet">The same on the command line:</p>
          <pre class="command">{p.command}</pre>
          {error && <p class="warn" role="alert">{error}</p>}
          <div class="bar">
            <button class="go" onClick={() => void act()} disabled={state === "asked"}>{state === "asked" ? "asked…" : p.label ?? p.verb}</button>
            <button onClick={shut}>leave it</button>
          </div>
        </dialog>
      )}
    </>
  );
}
