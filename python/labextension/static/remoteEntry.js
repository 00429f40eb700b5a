// The container that JupyterLab and Notebook 7 look for. It takes the application's own modules from the share scope,
// so that there is one of each, and loads the files beside it by address: no bundle, nothing evaluated.
(() => {
  const here = new URL('.', document.currentScript.src);
  let scope = {};

  const newer = (a, b) => a.localeCompare(b, 'en', { numeric: true }) > 0;

  // A module of the application, or null when this one has none.
  const shared = async name => {
    const versions = Object.entries(scope[name] ?? {});
    if (versions.length === 0) return null;
    const [, best] = versions.reduce((a, b) =>
      Boolean(a[1].loaded) !== Boolean(b[1].loaded) ? (a[1].loaded ? a : b) : newer(a[0], b[0]) ? a : b);
    return (await best.get())();
  };

  const load = async file => {
    const module = await import(new URL(file, here).href);
    const plugins = await module.plugins(shared);
    return () => ({ __esModule: true, default: plugins });
  };

  const style = () => new Promise((done, failed) => {
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.onload = () => done(() => ({}));
    link.onerror = () => failed(new Error('drupe: style.css cannot be read'));
    link.href = new URL('style.css', here).href;
    document.head.append(link);
  });

  const modules = { './extension': () => load('plugin.js'), './mime': () => load('mime.js'), './style': style };

  (window._JUPYTERLAB ??= {}).drupe = {
    init: given => { scope = given; },
    get: async name => {
      if (!modules[name]) throw new Error(`drupe: there is no module ${name}`);
      return modules[name]();
    }
  };
})();
