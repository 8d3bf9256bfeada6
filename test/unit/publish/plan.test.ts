import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { directoryEntries, pointerOf } from '../../../backend/src/protocol/directory.js'
import { encodeEnvelope, readInscription } from '../../../backend/src/protocol/inscription.js'
import { formatOutpoint, type Outpoint, readPointer } from '../../../backend/src/protocol/outpoint.js'
import { baseOf, encodePatch, PATCH_TYPE } from '../../../backend/src/protocol/patch.js'
import { PROFILES } from '../../../backend/src/protocol/profile.js'
import { applyDelta, encodeDelta, targetLength } from '../../../backend/src/protocol/vcdiff.js'
import {
  contentTypeOf,
  type DirectoryFormat,
  type FolderEntry,
  type PublishedStep,
  planReturn,
  planSite,
  publishedOn,
  type SitePlan,
} from '../../../src/publish/index.js'
import { contentTag } from '../../../src/publish/inscribe.js'
import { patchOn } from '../../../src/publish/patch.js'
import { binaryDirectory } from '../../support/gateway/site.js'
import { inscriptionScript, p2pkh } from '../../support/protocol/fake-chain.js'

const profile = PROFILES.local
const lock = p2pkh(7)
const file = (name: string, body = name): FolderEntry => ({ name, bytes: utf8(body) })
const folder = (name: string, ...entries: FolderEntry[]): FolderEntry => ({ name, entries })
const site = (...entries: FolderEntry[]): FolderEntry => folder('', ...entries)
const mint: PublishedStep = step(0, [
  inscriptionScript({ contentType: profile.nameContentType, body: utf8('alice') }),
])

function step(number: number, scripts: Uint8Array[], vout = 0): PublishedStep {
  const txid = number.toString(16).padStart(64, '0')
  return { txid, vout, outputs: scripts.map((lockingScript) => ({ satoshis: 1, lockingScript })) }
}

const published = (steps: readonly PublishedStep[]) => publishedOn({ steps, profile })
const DIRECTORIES = ['gw-fs/json', 'ordfs/dir']
const plan = (next: FolderEntry, steps: readonly PublishedStep[], format?: DirectoryFormat): SitePlan =>
  planSite({ site: next, lock, profile, format, published: published(steps) })
/** What was planned, as the next step. */
const after = (steps: readonly PublishedStep[], { outputs }: SitePlan): PublishedStep[] => [
  ...steps,
  {
    ...step(steps.length, []),
    outputs: outputs.map(({ lockingScript }) => ({ satoshis: 1, lockingScript })),
  },
]
const changes = ({ changes: all }: SitePlan): string[] =>
  all.map(({ path, kind, bytes }) => `${kind} ${path} ${bytes}`)

/** Files by paths, as a reader finds them that has the transactions of the steps and no others. */
function filesOf(steps: readonly PublishedStep[]): Record<string, string> {
  const files: Record<string, string> = {}
  const shownAt = (outpoint: Outpoint, patches = 0): { contentType: string; body: Uint8Array } => {
    const output = steps.find(({ txid }) => txid === outpoint.txid)?.outputs[outpoint.vout]
    const { content } = readInscription(output?.lockingScript ?? new Uint8Array())
    if (content === undefined) throw new Error(`nothing at ${formatOutpoint(outpoint)}`)
    expect(patches).toBeLessThanOrEqual(8)
    if (content.contentType !== PATCH_TYPE) return content
    const base = shownAt(baseOf(content.body), patches + 1)
    const delta = content.body.subarray(37)
    const making = applyDelta(delta, base.body, targetLength(delta, base.body.length))
    let made = making.next()
    while (!made.done) made = making.next()
    expect(content.body.length).toBeLessThanOrEqual(made.value.length / 2)
    return { contentType: base.contentType, body: made.value }
  }
  const read = (outpoint: Outpoint, path: string): void => {
    const content = shownAt(outpoint)
    if (!DIRECTORIES.includes(content.contentType)) {
      files[path] = `${content.contentType} ${Buffer.from(content.body).toString('hex')}`
      return
    }
    files[`${path}/`] = 'directory'
    for (const [name, entry] of directoryEntries(content.body, content.contentType)) {
      const text = pointerOf(entry)
      const pointer = readPointer(text)
      if (pointer === undefined || pointer.kind === 'transaction')
        throw new Error(`not written here: ${text}`)
      const { txid } = outpoint
      read(pointer.kind === 'sibling' ? { txid, vout: pointer.vout } : pointer.outpoint, `${path}/${name}`)
    }
  }
  const last = steps.at(-1) as PublishedStep
  read({ txid: last.txid, vout: 0 }, '')
  return files
}

function wanted(entry: FolderEntry, path = ''): Record<string, string> {
  if (!('entries' in entry))
    return { [path]: `${contentTypeOf(entry.name)} ${Buffer.from(entry.bytes).toString('hex')}` }
  const inside = entry.entries.map((each) => wanted(each, `${path}/${each.name}`))
  return Object.assign({ [`${path}/`]: 'directory' }, ...inside)
}

const LONG = 'a longer text that is worth a patch, as it has more than a hundred bytes of its own. '.repeat(3)

/** Few names and contents, so that files move, come back and are copied. */
const { anySite } = fc.letrec<{ anySite: FolderEntry[]; entry: FolderEntry }>((tie) => ({
  anySite: fc.uniqueArray(tie('entry'), { maxLength: 4, selector: ({ name }) => name }),
  entry: fc.oneof(
    { maxDepth: 3 },
    fc.record({
      name: fc.constantFrom('index.html', 'a.css', '__proto__', 'é'),
      bytes: fc.constantFrom('', 'one', 'two', LONG, `${LONG}one`, `two${LONG}`).map(utf8),
    }),
    fc.record({ name: fc.constantFrom('x', 'y', 'index.html'), entries: tie('anySite') }),
  ),
}))

const formats = fc.constantFrom<DirectoryFormat>('json', 'dir')

test('any sequence of sites reads back from the steps alone, and nothing but the first output is inscribed twice', () => {
  fc.assert(
    fc.property(
      fc.array(anySite, { minLength: 1, maxLength: 6 }),
      fc.infiniteStream(formats),
      (sites, format) => {
        let steps = [mint]
        const inscribed = new Set<string>()
        for (const entries of sites) {
          const planned = plan(site(...entries), steps, format.next().value)
          const before = steps.length > 1 ? filesOf(steps) : {}
          expect(planned.isUnchanged).toBe(isDeepStrictEqual(before, wanted(site(...entries))))
          for (const { path, kind } of planned.changes)
            if (kind !== 'kept' && path !== './') expect(`/${path}` in before).toBe(kind !== 'new')
          steps = after(steps, planned)
          expect(filesOf(steps)).toEqual(wanted(site(...entries)))
          for (const { lockingScript } of planned.outputs.slice(1)) {
            const { contentType, body } = readInscription(lockingScript).content ?? {}
            if ([...DIRECTORIES, PATCH_TYPE].includes(contentType ?? '')) continue
            const content = `${contentType} ${body}`
            expect(inscribed.has(content)).toBe(false)
            inscribed.add(content)
          }
        }
        for (const [sequence, entries] of sites.entries()) {
          const planned = planReturn({ published: published(steps), sequence: sequence + 1, lock })
          expect(planned.outputs).toHaveLength(1)
          expect(filesOf(after(steps, planned))).toEqual(wanted(site(...entries)))
        }
      },
    ),
    { numRuns: 50 },
  )
})

test('only what changed is inscribed, with the directories above it; the rest is listed', () => {
  const first = plan(
    site(
      file('index.html', '<h1>'),
      folder('css', file('a.css', 'a'), file('b.css', 'b')),
      folder('old', file('x')),
      folder('img', file('logo.png', 'L')),
    ),
    [mint],
  )
  expect(first.outputs).toHaveLength(9)
  expect(first.changes.map(({ kind }) => kind)).toEqual(Array.from({ length: 9 }, () => 'new'))
  const steps = after([mint], first)
  const next = site(
    file('index.html', '<h1>'),
    folder('css', file('a.css', 'A!'), file('b.css', 'b'), file('copy.css', 'A!')),
    folder('img', file('logo.png', 'L')),
    folder('moved', folder('img', file('logo.png', 'L'))),
    file('old', 'now a file'),
  )
  const second = plan(next, steps)
  expect(changes(second)).toEqual([
    expect.stringMatching(/^changed \.\/ \d+$/),
    expect.stringMatching(/^changed css\/ \d+$/),
    'changed css/a.css 2',
    'kept css/b.css 1',
    'kept css/copy.css 2',
    'kept img/logo.png 1',
    'kept index.html 4',
    expect.stringMatching(/^new moved\/ \d+$/),
    'kept moved/img/logo.png 1',
    'new old 10',
    expect.stringMatching(/^removed old\/ \d+$/),
  ])
  expect(second).toMatchObject({ isUnchanged: false, hasIndex: true })
  expect(second.outputs).toHaveLength(5)
  const same = plan(next, after(steps, second))
  expect(same.isUnchanged).toBe(true)
  expect(same.changes.filter(({ kind }) => kind !== 'kept')).toEqual([])
})

test('a step that publishes nothing shows what was published before', () => {
  const steps = [...after([mint], plan(site(file('index.html')), [mint])), step(2, [lock])]
  expect(published(steps).shownAt(2)?.outpoint).toEqual({ txid: steps[1]?.txid, vout: 0 })
  expect(plan(site(file('index.html')), steps).isUnchanged).toBe(true)
})

test.each([0, 3, -1, 0.5])('there is no state %p to put back', (sequence) => {
  const steps = after([mint], plan(site(file('index.html')), [mint]))
  const refusal = expect.objectContaining({ name: 'PublishError', code: 'NO_SUCH_STATE' })
  expect(() => planReturn({ published: published(steps), sequence, lock })).toThrow(refusal)
  expect(() => planReturn({ published: published([mint]), sequence, lock })).toThrow(refusal)
})

describe('what strangers inscribed', () => {
  const body = utf8('shown')
  const envelope = (more: object) =>
    encodeEnvelope({ contentType: 'text/plain; charset=utf-8', body, ...more })
  const note = file('note.txt', 'shown')
  const field = { tag: utf8('x'), value: body }
  const shown = { lockingScript: envelope({}) }
  const pointersOf = ({ outputs: [root] }: SitePlan) =>
    new Map(
      directoryEntries(readInscription(root?.lockingScript ?? lock).content?.body ?? body, 'gw-fs/json'),
    )

  test.each([
    ['the same bytes and type', step(1, [envelope({})]), true],
    ['a field that may say how to read them', step(1, [envelope({ fields: [field] })]), false],
    ['more satoshis than an ordinal', { ...step(1, []), outputs: [{ satoshis: 2, ...shown }] }, false],
  ])('%s', (_, inscribed, isKept) => {
    expect(pointersOf(plan(site(note), [mint, inscribed])).get('note.txt')).toBe(
      isKept ? `${inscribed.txid}_0` : '_1',
    )
  })

  const directory = (map: Record<string, string> | string): Uint8Array =>
    inscriptionScript({
      contentType: 'gw-fs/json',
      body: utf8(typeof map === 'string' ? map : JSON.stringify(map)),
    })

  test.each([
    ['leads back to itself', [directory({ x: '_0' })]],
    ['leads out of the steps', [directory({ 'note.txt': `${'f'.repeat(64)}_0` })]],
    ['leads to a transaction', [directory({ 'note.txt': 'f'.repeat(64) })]],
    ['is no map', [directory('[')]],
    ['has an entry that is no pointer', [directory({ 'note.txt': '?' })]],
    ['has an entry more', [directory({ 'note.txt': '_1', other: '_1' }), envelope({})]],
    ['has another name', [directory({ 'Note.txt': '_1' }), envelope({})]],
  ])('a directory that %s is not taken for the folder', (_, scripts) => {
    const planned = plan(site(folder('x', note)), [mint, step(1, scripts)])
    expect(pointersOf(planned).get('x')).toBe('_1')
    const back = planReturn({ published: published([mint, step(1, scripts)]), sequence: 1, lock })
    expect(back.isUnchanged).toBe(true)
  })

  test('a link is not taken for the file that its text would be, and comes back as it was', () => {
    const map = { 'note.txt': '_1', run: '_1', '.': `${'f'.repeat(64)}_7` }
    const { body: linked, contentType } = binaryDirectory(map, ['note.txt'])
    const steps = [mint, step(1, [inscriptionScript({ contentType, body: linked }), envelope({})])]
    expect(plan(site(note), steps).isUnchanged).toBe(false)
    const later = after(steps, plan(site(file('later')), steps))
    const [back] = planReturn({ published: published(later), sequence: 1, lock }).outputs
    const at = (vout: number) => `${'1'.padStart(64, '0')}_${vout}`
    expect(readInscription(back?.lockingScript ?? lock).content).toMatchObject(
      binaryDirectory({ ...map, 'note.txt': at(1), run: at(1) }, ['note.txt']),
    )
  })

  test('a thousand directories that lead to each other end', () => {
    const chain = Array.from({ length: 1000 }, (_, i) => directory({ a: `_${i + 1}`, b: `_${i + 1}` }))
    const planned = plan(site(note), [mint, step(1, [...chain, envelope({})])])
    expect(changes(planned)).toContain('kept note.txt 5')
  })
})

test('a directory that no gateway follows paths into is refused', () => {
  const entries = Array.from({ length: 13_000 }, (_, i) => file(`file-${i}`, 'x'))
  const steps = after([mint], plan(site(...entries), [mint]))
  const larger = site(...entries, file('one-more'))
  const refusal = expect.objectContaining({ code: 'DIRECTORY_TOO_LARGE' })
  expect(() => plan(larger, steps)).toThrow(refusal)
  // Another tool may have published one: its `_1` would lead elsewhere in another transaction.
  const pointers = entries.map((_, i) => `${JSON.stringify('x'.repeat(80) + i)}:"_1"`)
  const body = utf8(`{${pointers.join()}}`)
  const scripts = [inscriptionScript({ contentType: 'gw-fs/json', body }), inscriptionScript({ body })]
  const [other, shown] = [step(1, scripts), step(2, [inscriptionScript({ body: utf8('later') })])]
  expect(() => planReturn({ published: published([mint, other, shown]), sequence: 1, lock })).toThrow(refusal)
})

const lines = (count: number): string => Array.from({ length: count }, (_, at) => `line ${at}\n`).join('')
const typesIn = ({ outputs }: SitePlan): (string | undefined)[] =>
  outputs.map(({ lockingScript }) => readInscription(lockingScript).content?.contentType)

test('a patch is published where it has at most half of the bytes, for a file of the same type in the same place', () => {
  const text = lines(100)
  const steps = after([mint], plan(site(file('a.txt', text), file('b.txt', 'b')), [mint]))
  const next = (name: string, body: string) => plan(site(file(name, body), file('b.txt', 'b')), steps)
  const second = next('a.txt', `${text}more`)
  expect(typesIn(second)).toEqual(['gw-fs/json', PATCH_TYPE])
  const change = second.changes.find(({ path }) => path === 'a.txt')
  expect(change).toMatchObject({ kind: 'changed', bytes: text.length + 4 })
  expect(change?.patch).toBe(readInscription(second.outputs[1]?.lockingScript ?? lock).content?.body.length)
  expect(change?.patch).toBeLessThan(70)
  expect(second.outputs[1]?.tags).toEqual([contentTag(utf8(`${text}more`))])
  expect(typesIn(next('a.txt', lines(3)))).toEqual(['gw-fs/json', 'text/plain; charset=utf-8'])
  expect(typesIn(next('c.txt', `${text}more`))).not.toContain(PATCH_TYPE)
  const alone = plan(site(file('a.txt', `${text}more`), file('b.txt', 'b')), [mint])
  expect(typesIn(alone)).not.toContain(PATCH_TYPE)
})

test('a patch is the eighth on the others at most, and then the file is inscribed whole', () => {
  let steps = after([mint], plan(file('page.html', lines(100)), [mint]))
  const types = Array.from({ length: 18 }, (_, at) => {
    const planned = plan(file('page.html', `${lines(100)}${'x'.repeat(at + 1)}`), steps)
    steps = after(steps, planned)
    filesOf(steps)
    return typesIn(planned)[0] === PATCH_TYPE
  })
  const whole = types.flatMap((isPatch, at) => (isPatch ? [] : [at]))
  expect(whole).toEqual([8, 17])
})

test('a patch may make a directory, and an earlier state that is put back', () => {
  const files = Array.from({ length: 30 }, (_, at) => file(`${at}.txt`, `file ${at}`))
  let steps = [mint]
  const states = [files, [...files, file('new.txt')], [...files, file('newer.txt')]]
  const plans = states.map((entries) => {
    const planned = plan(site(...entries), steps)
    steps = after(steps, planned)
    expect(filesOf(steps)).toEqual(wanted(site(...entries)))
    return planned
  })
  // The first points at its siblings, and what follows at them from another transaction.
  expect(plans.map((each) => typesIn(each)[0])).toEqual(['gw-fs/json', 'gw-fs/json', PATCH_TYPE])
  const back = planReturn({ published: published(steps), sequence: 2, lock })
  expect(typesIn(back)).toEqual([PATCH_TYPE])
  expect(back.changes[0]?.patch).toBeGreaterThan(40)
  expect(filesOf(after(steps, back))).toEqual(wanted(site(...files, file('new.txt'))))
})

const patchAt = (txid: string, delta: Uint8Array) => encodePatch({ base: { txid, vout: 0 }, delta })
test.each([
  ['on what is not of this name', patchAt('ab'.repeat(32), encodeDelta(utf8(''), utf8('x')))],
  ['that is none', utf8('no record')],
  ['that cannot be applied', patchAt(step(1, []).txid, utf8('no delta'))],
])('a patch %s is shown as inscribed, and nothing is built on it', (_, body) => {
  const steps = [mint, step(1, [inscriptionScript({ contentType: 'text/plain', body: utf8(lines(50)) })])]
  const inscribed = [...steps, step(2, [inscriptionScript({ contentType: PATCH_TYPE, body })])]
  expect(published(inscribed).shown).toMatchObject({ contentType: PATCH_TYPE, patches: 0 })
  expect(typesIn(plan(file('a.txt', lines(51)), inscribed))).toEqual(['text/plain; charset=utf-8'])
})

test('a state that is a patch on what is not of this name is put back as it was inscribed', () => {
  const record = (count: number): Uint8Array => patchAt('ab'.repeat(32), utf8(lines(count)))
  const states = [50, 51].map((count, at) =>
    step(at + 1, [inscriptionScript({ contentType: PATCH_TYPE, body: record(count) })]),
  )
  const { outputs } = planReturn({ published: published([mint, ...states]), sequence: 1, lock })
  const inscribed = readInscription(outputs[0]?.lockingScript ?? new Uint8Array()).content
  expect(inscribed).toMatchObject({ contentType: PATCH_TYPE, body: record(50) })
})

describe('nothing is published as a patch that gateways refuse', () => {
  const MiB = 1024 * 1024
  const earlier = { outpoint: { txid: 'ab'.repeat(32), vout: 0 }, contentType: 'text/plain', patches: 1 }
  const body = utf8(lines(50))
  const changed = { contentType: 'text/plain', body: utf8(lines(51)) }

  test('as it makes too much', () => {
    const long = { contentType: 'text/plain', body: new Uint8Array(64 * MiB + 1) }
    expect(patchOn({ ...earlier, body: new Uint8Array(MiB), work: 0 }, long)).toBeUndefined()
  })

  test('as its chain is too much work', () => {
    const most = 256 * MiB - changed.body.length
    const { body: record } = patchOn({ ...earlier, body, work: 0 }, changed) ?? changed
    expect(patchOn({ ...earlier, body, work: most - record.length }, changed)).toBeDefined()
    expect(patchOn({ ...earlier, body, work: most - record.length + 1 }, changed)).toBeUndefined()
  })

  test('of a name: the work of its chain is what gateways count', () => {
    let steps = [mint]
    let work = 0
    for (const count of [50, 51, 52]) {
      const planned = plan(file('a.txt', lines(count)), steps)
      steps = after(steps, planned)
      const { body = new Uint8Array(), contentType } =
        readInscription(planned.outputs[0]?.lockingScript ?? new Uint8Array()).content ?? {}
      work += body.length + (contentType === PATCH_TYPE ? utf8(lines(count)).length : 0)
      expect(published(steps).shown?.work).toBe(work)
    }
  })
})
