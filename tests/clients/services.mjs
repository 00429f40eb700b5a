// The client code of JupyterLab and VS Code (@jupyterlab/services), without a browser, against a real server.
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { check, equal, main, require, rest, scenario, token, until, url, within } from './harness.mjs';

const { KernelManager, ServerConnection } = require('@jupyterlab/services');
const settings = ServerConnection.makeSettings({ baseUrl: url, wsUrl: url.replace('http', 'ws'), token, appendToken: true });

// What the library complains about, such as messages that are not valid.
const complaints = [];
console.error = console.warn = (...words) => complaints.push(words.map(String).join(' '));
const expected = /^Connection lost/;

class House {
  constructor() {
    this.manager = new KernelManager({ serverSettings: settings });
    this.folder = mkdtempSync(`${tmpdir()}/drupe-`);
    this.started = [];
  }

  async kernel(name = 'drupe') {
    const kernel = await this.manager.startNew({ name });
    this.started.push(kernel);
    await within(kernel.info, 'kernel_info');
    return kernel;
  }

  // A path that cells and scripts use as a signal to each other.
  flag(name) {
    const path = `${this.folder}/${name}`;
    return { path, raise: () => writeFileSync(path, ''), raised: () => existsSync(path) };
  }

  async close(good) {
    for (const kernel of this.started) if (!kernel.isDisposed) await kernel.shutdown().catch(() => 0);
    if (good) equal(complaints.filter(text => !expected.test(text)), [], 'what the library complains about');
  }
}

// One execute_request with everything that comes for it.
class Run {
  constructor(kernel, code, { keep = false, ...options } = {}) {
    this.messages = [];
    this.future = kernel.requestExecute({ code, stop_on_error: true, ...options }, !keep);
    this.future.onIOPub = message => void this.messages.push(message);
    this.done = within(this.future.done, `the end of: ${code}`).then(reply => (this.reply = reply).content);
    this.done.catch(() => 0);
  }

  text(name = 'stdout') {
    return this.of('stream').filter(c => c.name === name).map(c => c.text).join('');
  }

  of(type) {
    return this.messages.filter(m => m.header.msg_type === type).map(m => m.content);
  }

  async started() {
    await until(() => this.of('execute_input').length, 'execute_input');
    return this;
  }
}

const run = async (kernel, code, options) => {
  const made = new Run(kernel, code, options);
  await made.done;
  return made;
};

const waitFor = flag => `import os, time\nwhile not os.path.exists(${JSON.stringify(flag.path)}): time.sleep(0.01)\n`;
const restState = async kernel => (await rest(`api/kernels/${kernel.id}`)).execution_state;

scenario("cells, results, errors", async house => {
  const kernel = await house.kernel();
  const info = await kernel.info;
  equal([info.implementation, info.language_info.name, info.status], ['drupe', 'python', 'ok'], 'kernel_info');
  check(kernel.hasPendingInput === false, 'nothing is asked');
  const first = await run(kernel, "import sys\nprint('out'); print('err', file=sys.stderr); 6*7");
  equal([first.text(), first.text('stderr'), first.of('execute_result')[0].data['text/plain']], ['out\n', 'err\n', '42'],
    'output');
  check(Date.parse(first.reply.metadata.started) <= Date.parse(first.reply.header.date), 'started is before the reply');
  const failed = await run(kernel, '1/0');
  equal([failed.reply.content.status, failed.of('error')[0].ename], ['error', 'ZeroDivisionError'], 'error');
  const go = house.flag('go');
  const [a, b, c] = [new Run(kernel, waitFor(go) + '1/0'), new Run(kernel, '1'), new Run(kernel, '2', { stop_on_error: false })];
  await within(kernel.requestKernelInfo(), 'kernel_info'); // it overtakes nothing in the socket: all three are queued
  go.raise();
  equal([(await a.done).status, (await b.done).status, (await c.done).status], ['error', 'aborted', 'aborted'], 'abort');
  equal((await kernel.requestComplete({ code: 'import o', cursor_pos: 8 })).content.matches.includes('os'), true, 'complete');
  equal((await kernel.requestInspect({ code: 'len', cursor_pos: 3, detail_level: 0 })).content.found, true, 'inspect');
  equal((await kernel.requestIsComplete({ code: 'for i in x:' })).content.status, 'incomplete', 'is_complete');
  const history = await kernel.requestHistory({ hist_access_type: 'tail', n: 1, output: false, raw: true });
  equal(history.content.history.length, 1, 'history');
  equal((await kernel.requestCommInfo({})).content.comms, {}, 'comm_info');
});

scenario("a cell is busy to its end whatever else is answered", async house => {
  const kernel = await house.kernel();
  await run(kernel, "from comm import get_comm_manager\nget_comm_manager().register_target('t', lambda comm, msg: None)");
  const [go, states] = [house.flag('go'), []];
  const cell = await new Run(kernel, waitFor(go)).started();
  await until(() => kernel.status === 'busy', 'busy');
  kernel.statusChanged.connect((_, state) => states.push(state));
  for (let round = 0; round < 10; round++) {
    await within(kernel.requestKernelInfo(), 'kernel_info');
    await within(kernel.requestDebug({ type: 'request', command: 'debugInfo', seq: round, arguments: {} }).done, 'debug');
    const usage = kernel.sendControlMessage(usageRequest(kernel, round), true, true);
    check((await within(usage.done, 'usage_reply')).content.kernel_memory > 0, 'usage');
    await until(() => kernel.status === 'busy', 'busy after the answers');
    await until(async () => (await restState(kernel)) === 'busy', 'busy in REST');
  }
  equal(states.at(-1) ?? 'busy', 'busy', 'the last state');
  equal(states.filter((state, i) => state === 'idle' && states[i + 1] !== 'busy'), [], 'idle that nothing took back');
  go.raise();
  equal((await cell.done).status, 'ok', 'the cell');
  await until(() => kernel.status === 'idle', 'idle');
  await until(async () => (await restState(kernel)) === 'idle', 'idle in REST');
});

function usageRequest(kernel, round) {
  const header = { msg_id: `usage-${round}`, msg_type: 'usage_request', session: kernel.clientId, username: '',
                   date: new Date().toISOString(), version: '5.3' };
  return { header, parent_header: {}, metadata: {}, content: {}, channel: 'control', buffers: [] };
}

scenario("comms settle in a busy kernel too", async house => {
  const kernel = await house.kernel();
  await run(kernel, `from comm import get_comm_manager
heard = []
def opened(comm, message):
    comm.on_msg(lambda m: (heard.append(m['content']['data']), comm.send({'echo': m['content']['data']}, buffers=[b'raw'])))
get_comm_manager().register_target('echo', opened)`);
  const comm = kernel.createComm('echo');
  const echoes = [];
  comm.onMsg = message => void echoes.push([message.content.data.echo, Buffer.from(message.buffers[0].buffer ??
    message.buffers[0]).toString()]);
  await within(comm.open({ hello: 1 }).done, 'comm_open');
  await within(comm.send(0).done, 'comm_msg');
  const go = house.flag('go');
  const cell = await new Run(kernel, waitFor(go)).started();
  const sent = [...Array(20).keys()].map(i => comm.send(i + 1).done);
  go.raise();
  await cell.done;
  await within(Promise.all(sent), 'twenty messages');
  await until(() => echoes.length === 21, 'the answers');
  equal(echoes.map(e => e[0]), [...Array(21).keys()], 'the order');
  equal(echoes[20][1], 'raw', 'the buffer');
  equal((await run(kernel, 'print(len(heard))')).text(), '21\n', 'what Python heard');
  const closed = new Promise(done => (comm.onClose = done));
  await within(comm.close().done, 'comm_close');
  await within(closed, 'onClose');
  const nobody = kernel.createComm('no such target');
  const refused = new Promise(done => (nobody.onClose = done));
  await within(nobody.open().done, 'comm_open for nobody');
  await within(refused, 'the refusal');
  let opened;
  kernel.registerCommTarget('page', (comm, message) => void (opened = message.content.data));
  await run(kernel, "from comm import create_comm\nmine = create_comm(target_name='page', data={'x': 1})");
  await until(() => opened, 'comm_open of the kernel');
  equal(opened, { x: 1 }, 'its data');
});

scenario("late output of a thread reaches its cell", async house => {
  const kernel = await house.kernel();
  const go = house.flag('go');
  const cell = await run(kernel, `import threading
def work():
    ${waitFor(go).trim().replace('\n', '\n    ')}
    print('late')
    display('shown late')
threading.Thread(target=work).start()`, { keep: true });
  const other = await run(kernel, "print('another')");
  go.raise();
  await until(() => cell.of('display_data').length, 'the display of the thread');
  equal([cell.text(), cell.of('display_data')[0].data['text/plain'], other.text()], ['late\n', "'shown late'", 'another\n'],
    'where it went');
});

scenario("the server drops nothing of twenty thousand prints", async house => {
  const kernel = await house.kernel();
  for (const [count, flush] of [[20000, false], [5000, true]]) {
    const cell = await run(kernel, `for i in range(${count}): print(i, flush=${flush ? 'True' : 'False'})`);
    equal(cell.text('stderr'), '', 'what the server complains about');
    equal(cell.text(), [...Array(count).keys()].map(i => `${i}\n`).join(''), `${count} lines`);
  }
  const shown = await run(kernel, "h = display('0', display_id=True)\nfor i in range(2000): h.update(str(i))");
  equal(shown.text('stderr'), '', 'what the server complains about');
});

scenario("interrupt", async house => {
  const kernel = await house.kernel();
  for (const endless of ['while True: pass', 'time.sleep(600)', "input('?')", 'await asyncio.sleep(600)']) {
    const cell = await new Run(kernel, `import asyncio, time\nprint('begun', flush=True)\n${endless}`, { allow_stdin: true });
    await until(() => cell.text() === 'begun\n', 'its beginning');
    await within(kernel.interrupt(), 'the answer to the interrupt');
    equal([(await cell.done).status, cell.of('error')[0].ename], ['error', 'KeyboardInterrupt'], endless);
  }
  await kernel.interrupt(); // idle: harmless
  equal((await run(kernel, "print('alive')")).text(), 'alive\n', 'the next cell');
});

scenario("restart", async house => {
  const kernel = await house.kernel();
  const [states, go] = [[], house.flag('never')];
  kernel.statusChanged.connect((_, state) => states.push(state));
  const pid = (await run(kernel, "x = 1\nimport os; print(os.getpid())")).text();
  const cell = await new Run(kernel, waitFor(go)).started();
  await within(kernel.restart(), 'the restart');
  await within(kernel.info, 'kernel_info');
  check(states.includes('restarting'), `restarting in ${states}`);
  await cell.future.done.then(() => check(false, 'the cell is cancelled'), () => 0);
  const after = await run(kernel, "print('x' in globals())\nimport os; print(os.getpid())");
  const [gone, now] = after.text().split('\n');
  equal(gone, 'False', 'a new namespace');
  check(now !== pid.trim(), 'a new process');
  await until(() => kernel.status === 'idle', 'idle');
});

scenario("shutdown", async house => {
  const kernel = await house.kernel();
  const pid = Number((await run(kernel, 'import os; print(os.getpid())')).text());
  await within(kernel.shutdown(), 'the shutdown');
  equal(await rest(`api/kernels/${kernel.id}`), 404, 'the kernel in REST');
  await until(() => !alive(pid), 'the end of the process');
});

function alive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

scenario("a kernel that dies is restarted", async house => {
  const kernel = await house.kernel();
  const states = [];
  kernel.statusChanged.connect((_, state) => states.push(state));
  const cell = await new Run(kernel, "print('last words', flush=True)\nimport os, signal; os.kill(os.getpid(), signal.SIGKILL)");
  await until(() => states.includes('autorestarting'), 'the restart by the server');
  cell.done.catch(() => 0);
  await until(() => kernel.status === 'idle', 'the new kernel');
  equal((await run(kernel, "print('again')")).text(), 'again\n', 'the new kernel');
});

scenario("input", async house => {
  const kernel = await house.kernel();
  const cell = new Run(kernel, "import getpass\nprint(input('name? '), getpass.getpass('word? '))", { allow_stdin: true });
  const asked = [];
  cell.future.onStdin = message => {
    asked.push(message.content);
    kernel.sendInputReply({ status: 'ok', value: `answer ${asked.length}` }, message.header);
  };
  equal((await cell.done).status, 'ok', 'the cell');
  equal(asked, [{ prompt: 'name? ', password: false }, { prompt: 'word? ', password: true }], 'what it asked');
  equal(cell.text(), 'answer 1 answer 2\n', 'what it got');
});

scenario("a lost connection loses nothing", async house => {
  const kernel = await house.kernel();
  const [first, last] = [house.flag('first'), house.flag('last')];
  const cell = await new Run(kernel, `print('one', flush=True)\n${waitFor(first)}print('two', flush=True)\n${waitFor(last)}print('three')`).started();
  await until(() => cell.text() === 'one\n', 'the first line');
  const lost = new Promise(done => kernel.connectionStatusChanged.connect((_, s) => s === 'connecting' && done()));
  kernel._ws.close();
  first.raise();
  await within(lost, 'the loss');
  await until(() => kernel.connectionStatus === 'connected', 'the new connection');
  last.raise();
  equal((await cell.done).status, 'ok', 'the cell');
  await until(() => cell.text().endsWith('three\n'), 'the last line');
  check(cell.text() === 'one\ntwo\nthree\n', `every line in ${JSON.stringify(cell.text())}`);
  await within(kernel.reconnect(), 'a reconnection');
  equal((await run(kernel, "print('four')")).text(), 'four\n', 'the next cell');
});

scenario("two clients", async house => {
  const one = await house.kernel();
  const two = house.manager.connectTo({ model: { id: one.id, name: 'drupe' } });
  await within(two.info, 'kernel_info of the second');
  const seen = [];
  two.anyMessage.connect((_, { msg, direction }) => direction === 'recv' && seen.push(msg));
  const [a, b] = [new Run(one, "print('from one'); mine = 1"), new Run(two, "print('from two', 'mine' in globals())")];
  await Promise.all([a.done, b.done]);
  equal([a.text(), b.text()], ['from one\n', 'from two True\n'], 'their output');
  const heard = seen.filter(m => m.parent_header.session === one.clientId).map(m => m.header.msg_type);
  check(['execute_input', 'stream', 'status'].every(t => heard.includes(t)), `the other's cell in ${heard}`);
  check(!heard.includes('execute_reply'), "the other's reply");
  const sessions = new Set(seen.map(m => m.header.session));
  equal(sessions.size, 1, 'sessions of the kernel');
  two.dispose();
});

scenario("nothing is pending and nothing is said when idle", async house => {
  const kernel = await house.kernel();
  await run(kernel, "import threading; display('shown'); print('said')");
  const said = [];
  kernel.anyMessage.connect((_, { msg }) => said.push(msg.header.msg_type));
  await new Promise(done => setTimeout(done, 3000)); // an absence can only be waited for
  equal(said, [], 'messages of an idle kernel');
  equal(kernel._futures.size, 0, 'pending futures');
});

scenario("debug_request", async house => {
  const kernel = await house.kernel();
  const debug = (command, args = {}) =>
    within(kernel.requestDebug({ type: 'request', command, seq: ++sequence, arguments: args }).done, command).then(r => r.content);
  let sequence = 0;
  const info = await kernel.info;
  const before = await debug('debugInfo');
  equal([before.success, before.body.isStarted], [true, false], 'debugInfo');
  if (!info.supported_features?.includes('debugger')) throw new Error('the kernel announces no debugger');
  const events = [];
  kernel.anyMessage.connect((_, { msg }) => msg.header.msg_type === 'debug_event' && events.push(msg.content));
  const first = await debug('initialize', { clientID: 't', clientName: 't', adapterID: '', pathFormat: 'path',
    linesStartAt1: true, columnsStartAt1: true, supportsVariableType: true, supportsVariablePaging: true,
    supportsRunInTerminalRequest: true, locale: 'en' });
  check(first.success, 'initialize');
  check((await debug('attach', { justMyCode: false })).success, 'attach');
  const code = "x = 20\ny = x + 1\nprint('sum', x + y)";
  const path = (await debug('dumpCell', { code })).body.sourcePath;
  const set = await debug('setBreakpoints', { breakpoints: [{ line: 3 }], source: { path }, sourceModified: false });
  equal(set.body.breakpoints.map(b => [b.verified, b.line]), [[true, 3]], 'breakpoints');
  check((await debug('configurationDone')).success, 'configurationDone');
  equal((await debug('debugInfo')).body.isStarted, true, 'isStarted');
  const cell = new Run(kernel, code);
  const stop = await until(() => events.find(e => e.event === 'stopped'), 'the stop');
  const frames = (await debug('stackTrace', { threadId: stop.body.threadId })).body.stackFrames;
  equal([frames[0].line, frames[0].source.path], [3, path], 'where');
  const scopes = (await debug('scopes', { frameId: frames[0].id })).body.scopes;
  const variables = (await debug('variables', { variablesReference: scopes[0].variablesReference })).body.variables;
  equal(variables.filter(v => 'xy'.includes(v.name)).map(v => v.value), ['20', '21'], 'variables');
  await until(() => kernel.status === 'busy', 'busy in a stopped kernel');
  const rich = await debug('richInspectVariables', { variableName: 'y', frameId: frames[0].id });
  check(rich.body.data['text/plain'].includes('21'), 'rich inspection');
  await debug('continue', { threadId: stop.body.threadId });
  equal((await cell.done).status, 'ok', 'the cell');
  equal(cell.text(), 'sum 41\n', 'its output');
  check((await debug('disconnect', { restart: false, terminateDebuggee: false })).success, 'disconnect');
  equal((await run(kernel, "print('after')")).text(), 'after\n', 'after the debugger');
});

scenario("subshells only when they are switched on", async house => {
  const plain = await house.kernel();
  equal(plain.supportsSubshells, false, 'announced without the switch');
  const kernel = await house.kernel('drupe-subshells');
  equal(kernel.supportsSubshells, true, 'announced with the switch');
  await run(kernel, `import threading
from comm import get_comm_manager
where = []
def opened(comm, message):
    comm.on_msg(lambda m: (where.append(threading.current_thread() is threading.main_thread()), comm.send('ok')))
get_comm_manager().register_target('t', opened)`);
  const subshell = (await within(kernel.requestCreateSubshell({}).done, 'create_subshell')).content.subshell_id;
  equal((await within(kernel.requestListSubshell({}).done, 'list')).content.subshell_id.includes(subshell), true, 'the list');
  const go = house.flag('go');
  const cell = await new Run(kernel, waitFor(go) + "print('main done')").started();
  const other = kernel.clone();
  other.subshellId = subshell;
  await within(other.info, 'kernel_info of the subshell');
  const beside = await run(other, "print('beside')");
  equal(beside.text(), 'beside\n', 'a cell in the subshell');
  await until(() => kernel.status === 'busy', 'busy goes on');
  const comm = kernel.createComm('t'); // goes over a subshell of its own: JupyterLab's default
  await within(comm.subshellStarted, 'its subshell');
  const answer = new Promise(done => (comm.onMsg = done));
  await within(comm.open().done, 'comm_open while busy');
  await within(comm.send(1).done, 'comm_msg while busy');
  await within(answer, 'the answer while busy');
  equal((await run(other, 'print(where)')).text(), '[False]\n', 'where its handler ran');
  await until(() => kernel.status === 'busy', 'busy to the end');
  go.raise();
  equal((await cell.done).status, 'ok', 'the cell');
  equal(cell.text(), 'main done\n', 'its output');
  await within(kernel.requestDeleteSubshell({ subshell_id: subshell }).done, 'delete_subshell');
  other.dispose();
});

await main(() => new House());
