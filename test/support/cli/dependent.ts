import { execFile } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const ROOT = resolve(import.meta.dirname, '../../..')
const run = promisify(execFile)

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
/** Whether this Node requires modules without a flag. */
export const requiresModules = major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19)

/** Compiles in a folder, by one thread: several would each check the types that they share. Rejects with what the compiler says. */
export async function typescript(cwd: string, args: string[] = []): Promise<void> {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  await run(process.execPath, [compiler, '--singleThreaded', ...args], { cwd })
}

/** A folder in which a package is installed under its name, for programs that depend on it. */
export interface Dependent {
  /** Runs a program, and gives what it prints. `.cjs` programs use `require`. */
  run(program: string, extension?: 'js' | 'cjs'): Promise<string>
  /** Compiles programs with their types; throws what the compiler says against them. */
  compile(programs: string[], options?: CompileOptions): Promise<void>
}

export interface CompileOptions {
  resolution?: 'node16' | 'bundler'
  /** Packages whose types a program has without importing them. */
  types?: string[]
}

/**
 * @param package_.name Of the package.
 * @param package_.built Where it is built.
 * @param package_.empty Where the programs go.
 */
export async function dependent(package_: {
  name: string
  built: string
  empty: string
}): Promise<Dependent> {
  const { name, built, empty } = package_
  await mkdir(join(empty, 'node_modules'))
  await symlink(built, join(empty, 'node_modules', name))
  return await programsIn(empty)
}

/** A folder in which packages are installed. Programs are written into it. */
export async function programsIn(folder: string): Promise<Dependent> {
  await writeFile(join(folder, 'package.json'), '{"type": "module"}')
  return {
    async run(program, extension = 'js') {
      const file = join(folder, `program.${extension}`)
      await writeFile(file, program)
      return (await run(process.execPath, [file])).stdout
    },
    async compile(programs, { resolution = 'node16', types = [] } = {}) {
      const files = programs.map((_, at) => `program${at}.ts`)
      for (const [at, file] of files.entries()) await writeFile(join(folder, file), programs[at] ?? '')
      const compilerOptions = {
        ...{ noEmit: true, strict: true, skipLibCheck: false, target: 'es2022', lib: ['es2022', 'dom'] },
        ...{ module: resolution === 'node16' ? 'node16' : 'esnext', moduleResolution: resolution },
        ...{ types, typeRoots: [join(ROOT, 'node_modules/@types')] },
      }
      await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
      await typescript(folder)
    },
  }
}
