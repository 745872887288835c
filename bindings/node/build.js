// Compiles weir_node.c to weir.node: what `npm install` runs. One C file against N-API needs a
// compiler and node's headers and no build system, so node-gyp and its downloads are not asked for.
//
//   CC                 the compiler (cc)
//   WEIR_FLAGS         where weir.h and libweir.so are (pkg-config weir-c)
//   WEIR_NODE_INCLUDE  the folder of node_api.h (beside this node; Debian: libnode-dev)
'use strict';

const {execFileSync} = require('node:child_process');
const {existsSync, realpathSync} = require('node:fs');
const path = require('node:path');

function fail(message) {
  console.error(`weir: ${message}`);
  process.exit(1);
}

function weirFlags() {
  if (process.env.WEIR_FLAGS) return process.env.WEIR_FLAGS;
  try {
    return execFileSync('pkg-config', ['--cflags', '--libs', 'weir-c'], {encoding: 'utf8'});
  } catch {
    return fail('pkg-config does not find weir-c: install libweir, or set WEIR_FLAGS');
  }
}

const beside = path.join(path.dirname(realpathSync(process.execPath)), '..', 'include', 'node');
const include = process.env.WEIR_NODE_INCLUDE ?? beside;
if (!existsSync(path.join(include, 'node_api.h'))) {
  fail(`no node_api.h in ${include}: apt-get install libnode-dev, or set WEIR_NODE_INCLUDE`);
}
const flags = weirFlags().split(/\s+/).filter(Boolean);
const compiler = process.env.CC ?? 'cc';
const command = ['-std=c99', '-O2', '-Wall', '-Wextra', '-fPIC', '-shared', '-fvisibility=hidden',
  `-I${include}`, 'weir_node.c', '-o', 'weir.node', ...flags];
try {
  execFileSync(compiler, command, {cwd: __dirname, stdio: 'inherit'});
} catch {
  fail(`failed: ${compiler} ${command.join(' ')}`);
}
