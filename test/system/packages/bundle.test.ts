import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cachedDataVersionTag } from 'node:v8'
import { Script } from 'node:vm'
import { packageVersion } from '../../../src/server/config/package-info.js'
import { builtPackage } from '../../support/cli/built-package.js'

// The command line as `bundle.mjs` builds it.

const CACHE = `${process.arch}-${cachedDataVersionTag()}.cache`

describe('the bundled command line', () => {
  let built = ''
  let folder = ''
  beforeAll(async () => {
    built = await builtPackage()
    folder = await mkdtemp(join(tmpdir(), 'minetree-bundle-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  /** What is printed by a copy of the bundle with a cache of its own, or none; by default, the version. */
  async function printedWith(
    cache?: Uint8Array,
    { argument = '--version', edit = (text: string) => text } = {},
  ): Promise<string> {
    const copy = await mkdtemp(join(folder, 'copy-'))
    await mkdir(join(copy, 'dist/cli'), { recursive: true })
    for (const file of ['package.json', 'dist/cli/main.js'])
      await copyFile(join(built, file), join(copy, file))
    const program = 'dist/cli/main.program.cjs'
    await writeFile(join(copy, program), edit(await readFile(join(built, program), 'latin1')), 'latin1')
    if (cache !== undefined) await writeFile(join(copy, `dist/cli/main.${CACHE}`), cache)
    const main = join(copy, 'dist/cli/main.js')
    const { stdout } = await promisify(execFile)(process.execPath, [main, argument])
    return stdout.trim()
  }

  test('comes with what V8 made of its programs, which the same V8 takes', async () => {
    for (const name of ['main', 'submission-worker', 'check-worker']) {
      const path = join(built, 'dist/cli', name)
      const filename = `${path}.program.cjs`
      // Behind a hash.
      const cachedData = (await readFile(`${path}.${CACHE}`)).subarray(32)
      const script = new Script(await readFile(filename, 'latin1'), { filename, cachedData })
      expect(script.cachedDataRejected).toBe(false)
    }
  })

  test('starts without it', async () => {
    expect(await printedWith()).toBe(packageVersion())
  })

  test('starts with that of another program', async () => {
    const other = new Script('(function () {})').createCachedData()
    expect(await printedWith(other)).toBe(packageVersion())
    expect(await printedWith(new Uint8Array(1000))).toBe(packageVersion())
  })

  test('starts with one that was damaged', async () => {
    const cache = await readFile(join(built, `dist/cli/main.${CACHE}`))
    const middle = Math.floor(cache.length / 2)
    expect(await printedWith(cache.fill(0xff, middle, middle + 1000))).toBe(packageVersion())
  })

  test('runs the program as it is, and not as it was when the cache was made', async () => {
    const cache = await readFile(join(built, `dist/cli/main.${CACHE}`))
    // Long texts are in several lines of the bundle.
    const edit = (text: string): string =>
      text.replaceAll('\\\n', '').replaceAll('content that lives on', 'CONTENT THAT LIVES ON')
    expect(await printedWith(cache, { argument: '--help', edit })).toContain('CONTENT THAT LIVES ON')
  })

  test('prints no warning where Node has one for programs that look for localStorage', async () => {
    // As Node 25 and later do.
    const warns = `Object.defineProperty(globalThis, 'localStorage', { configurable: true, get: () => process.emitWarning('looked for') })`
    const run = [
      `--import=data:text/javascript,${encodeURIComponent(warns)}`,
      join(built, 'dist/cli/main.js'),
    ]
    const { stderr } = await promisify(execFile)(process.execPath, [...run, '--version'])
    expect(stderr).toBe('')
  })

  test('comes with the licences of the packages in it', async () => {
    const licences = await readFile(join(built, 'dist/cli/LICENSES.txt'), 'utf8')
    for (const name of ['@bsv/sdk', 'express', 'zod'])
      expect(licences).toMatch(new RegExp(`^${name} \\d[^\\n]*\\n\\n.*\\S`, 'm'))
    // Left to npm.
    expect(licences).not.toMatch(/^(?:knex|mongodb|mysql2|libsql|undici) \d/m)
  })
})
