import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { typescript } from '../../support/cli/dependent.js'
import { installBoth } from '../../support/cli/installed-package.js'
import { blocksOf, PAGES, programsOf } from '../../support/docs/blocks.js'

// Every program of the documentation compiles, by strict rules, with both packages from their tarballs.

const ROOT = resolve(import.meta.dirname, '../../..')
/** For a test, in milliseconds: the packages are built and installed. */
const PATIENCE = 600_000

/** A host has more packages: `plugin-example.test.ts` compiles and runs its programs with those. */
const OF_HOSTS = '@bsv/overlay-express'

const programs = PAGES.flatMap((page) => programsOf(page).map((program) => ({ page, ...program }))).filter(
  ({ code }) => !code.includes(OF_HOSTS),
)

test('every program of a page is TypeScript, so that it is compiled', () => {
  const others = PAGES.flatMap((page) =>
    blocksOf(page)
      .filter(({ language }) => ['js', 'javascript', 'jsx', 'typescript'].includes(language))
      .map(({ line }) => `${page}:${line}`),
  )
  expect(others).toEqual([])
  expect(programs.length).toBeGreaterThan(8)
})

const cwd = await mkdtemp(join(tmpdir(), 'minetree-docs-programs-'))
afterAll(() => rm(cwd, { recursive: true, force: true }))
const installed = await installBoth(cwd)
const [withRegistry, why] = 'missing' in installed ? [test.skip, ` (${installed.missing})`] : [test, '']

withRegistry(
  `each of them compiles with the tarballs${why}`,
  async () => {
    const files = programs.map(({ page, line }) => `${page.replaceAll(/\W/g, '-')}-${line}.ts`)
    // A module, though it may import nothing.
    for (const [index, { code }] of programs.entries())
      await writeFile(join(cwd, files[index] ?? ''), `${code}\nexport {}\n`)
    const compilerOptions = {
      ...{ noEmit: true, strict: true, target: 'es2022', lib: ['es2022', 'dom'] },
      ...{ module: 'nodenext', moduleDetection: 'force' },
      ...{ types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')] },
    }
    await writeFile(join(cwd, 'package.json'), '{"type": "module"}')
    await writeFile(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
    await typescript(cwd)
  },
  PATIENCE,
)
