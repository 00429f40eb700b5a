// What the scripts for node share: named scenarios, one of which runs per process; waiting for states.
import { createRequire } from 'node:module';

// Packages are not beside this file but in NODE_PATH, which only require() reads.
export const require = createRequire(import.meta.url);
export const url = process.env.DRUPE_URL;
export const token = process.env.DRUPE_TOKEN;

const known = new Map();

export function scenario(name, body) {
  known.set(name, body);
}

export function check(condition, what) {
  if (!condition) throw new Error(`does not hold: ${what}`);
}

export function equal(actual, expected, what) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  check(a === b, `${what}: ${a} is not ${b}`);
}

// Poll until `condition()` holds; returns its value. `what`: a text, or a function that makes it when it is too late.
export async function until(condition, what, seconds = 120) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${seconds} s in vain for ${what instanceof Function ? what() : what}`);
    await new Promise(done => setTimeout(done, 10));
  }
}

export async function within(promise, what, seconds = 120) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`waited ${seconds} s in vain for ${what}`)), seconds * 1000);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

// REST call to the server; the decoded answer, or the status when there is none.
export async function rest(path, method = 'GET', body = undefined) {
  const answer = await fetch(url + path, {
    method, headers: { Authorization: `token ${token}` }, body: body && JSON.stringify(body)
  });
  const text = await answer.text();
  return answer.ok && text ? JSON.parse(text) : answer.status;
}

// Run the scenario that the command line names, between `open()` and its result's `close()`.
export async function main(open) {
  const body = known.get(process.argv[2]);
  if (!body) {
    console.log(`there is no scenario '${process.argv[2]}'`);
    process.exit(2);
  }
  const house = await open(process.argv[2]);
  let problem;
  try {
    await body(house);
  } catch (error) {
    problem = error;
    console.log(error.stack);
    await house.failed?.();
  }
  try {
    await house.close(!problem);
  } catch (error) {
    problem ??= error;
    console.log(error.stack);
  }
  process.exit(problem ? 1 : 0);
}
