// Requests to the scheduler. The token, if one is needed, is in this module's memory alone.

let token = "";
let asking = null;

export class Problem extends Error {}

export async function get(name, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const query = new URLSearchParams(given).toString();
  const answer = await send(`api/${name}${query ? `?${query}` : ""}`, signal);
  const body = await answer.json().catch(() => ({ error: `the scheduler answered ${answer.status}` }));
  if (!answer.ok) throw new Problem(body.error ?? `the scheduler answered ${answer.status}`);
  return body;
}

async function send(path, signal) {
  for (;;) {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const answer = await fetch(path, { headers, signal, cache: "no-store" });
    if (answer.status !== 401) return answer;
    const { error } = await answer.json().catch(() => ({ error: "" }));
    await signIn(token ? error : "");
  }
}

// One question, however many requests need the token.
function signIn(problem) {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("sign-in");
    const input = document.getElementById("token");
    document.getElementById("sign-in-problem").textContent = problem;
    input.value = "";
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      token = input.value.trim();
      input.value = "";
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

// Calls `changed` with each event of the stream, `broken` while there is none; never returns.
export async function follow(changed, broken) {
  let pause = 1000;
  for (;;) {
    try {
      const answer = await send("api/stream");
      if (!answer.ok) throw new Problem((await answer.json()).error);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        pause = 1000;
        text += value;
        const messages = text.split("\n\n");
        text = messages.pop();
        for (const message of messages) {
          if (message.startsWith("data: ")) changed(JSON.parse(message.slice(6)));
        }
      }
      broken("the scheduler has closed the connection");
    } catch (error) {
      broken(error instanceof Problem ? error.message : "the scheduler does not answer");
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 15000);
  }
}
