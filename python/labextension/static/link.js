// Questions to a kernel. They go as debug_requests over the control channel: answered while a cell runs, and neither
// the status of the kernel nor its last activity moves.

const PATIENCE = 20000; // ms
const GONE = ['dead', 'terminating', 'restarting', 'autorestarting', 'starting'];

// Whether a kernel connection (of @jupyterlab/services) leads to Drupe.
export async function isDrupe(kernel) {
  const info = await kernel.info;
  return info.implementation === 'drupe';
}

// The kernel is there but has nothing to tell: no device was used yet.
export class Quiet extends Error {}

// Whether it holds a lease of a device broker.
export async function isLeased(kernel) {
  const info = await kernel.info;
  return Boolean(info.supported_features?.includes('drupe lease'));
}

export class Link {
  constructor(kernel) {
    this.kernel = kernel;
    this.number = 0;
  }

  get ready() {
    const { isDisposed, connectionStatus, status } = this.kernel;
    return !isDisposed && connectionStatus === 'connected' && !GONE.includes(status);
  }

  async ask(command, wishes = {}) {
    const future = this.kernel.requestDebug({ type: 'request', seq: ++this.number, command, arguments: wishes });
    let timer;
    const late = new Promise((_, failed) => {
      timer = setTimeout(() => failed(new Error(`the kernel does not answer ${command}`)), PATIENCE);
    });
    try {
      const { content } = await Promise.race([future.done, late]);
      if (!content?.success) throw new Quiet(content?.message ?? `the kernel refuses ${command}`);
      return content.body;
    } finally {
      clearTimeout(timer);
      future.done.catch(() => {}); // cancelled below, when it was late
      if (!future.isDisposed) future.dispose();
    }
  }

  hello() {
    return this.ask('drupe/hello');
  }

  // What changed since the view with the serial `after`; 0: everything.
  view(after) {
    return this.ask('drupe/view', { after });
  }

  // Devices and cells alone, as far as that can be said.
  figures(after, since) {
    return this.ask('drupe/view', { after, since, spans: 1 });
  }

  // Of a kernel that has one: its devices, when it ends, who waits.
  lease() {
    return this.ask('drupe/lease');
  }

  errors(after) {
    return this.ask('drupe/errors', { after });
  }
}
