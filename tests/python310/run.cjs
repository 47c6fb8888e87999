// Runs a Python program on CPython 3.10, which Pyodide has as WebAssembly: node run.cjs HOME CHECKOUT PROGRAM < input
const fs = require("fs");
const path = require("path");

const [, , home, checkout, program] = process.argv;
const pyodide = path.join(home, "node_modules", "pyodide");

// Pyodide is one line of 1.5 MB, which Node.js prints with an uncaught error.
function fail(error) {
  console.error(String(error.message || error).slice(-3000));
  process.exit(1);
}
process.on("uncaughtException", fail);

require(pyodide)
  .loadPyodide({ indexURL: pyodide, stdout: console.log, stderr: console.error })
  .then((python) => {
    for (const [root, mounted] of [[path.join(home, "site"), "/site"], [checkout, "/checkout"]]) {
      python.FS.mkdir(mounted);
      python.FS.mount(python.FS.filesystems.NODEFS, { root }, mounted);
    }
    python.globals.set("INPUT", fs.readFileSync(0, "utf8"));
    python.runPython(fs.readFileSync(program, "utf8"));
  })
  .catch(fail);
