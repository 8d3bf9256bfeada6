import { execFile } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A folder in which the package is installed under its name, for programs that depend on it. */
export interface Dependent {
  /** Runs a program, and gives what it prints. */
  run(program: string): Promise<string>
  /** Compiles a program with its types; throws what the compiler says against it. */
  compile(program: string): Promise<void>
}

/**
 * @param folders.built The package as it is built.
 * @param folders.empty Where the programs go.
 */
export async function dependent({ built, empty }: { built: string; empty: string }): Promise<Dependent> {
  await mkdir(join(empty, 'node_modules'))
  await symlink(built, join(empty, 'node_modules/minetree'))
  await writeFile(join(empty, 'package.json'), '{"type": "module"}')
  return {
    async run(program) {
      await writeFile(join(empty, 'program.js'), program)
      return (await run(process.execPath, [join(empty, 'program.js')])).stdout
    },
    async compile(program) {
      // The SDK's own declarations do not compile without those of Node, nor by strict rules.
      await writeFile(join(empty, 'program.ts'), program)
      const compiler = resolve(import.meta.dirname, '../../../node_modules/typescript/bin/tsc')
      const options =
        '--noEmit --strict --skipLibCheck --target es2022 --lib es2022,dom --module nodenext'.split(' ')
      await run(process.execPath, [compiler, ...options, 'program.ts'], { cwd: empty })
    },
  }
}
