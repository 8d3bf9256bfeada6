import type { Page } from 'puppeteer-core'
import { outpointLabel } from '../../../backend/src/protocol/host-label.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { press, says, textOf, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { builtPages } from '../../support/cli/built-package.js'
import { hostedServer } from '../../support/gateway/hosted.js'
import { folder, text } from '../../support/gateway/site.js'
import { untilReady, useServers } from '../../support/server/test-server.js'

// What tools for the web build by default, as they build it: absolute paths, one page for all routes, or a folder for each page.

const hosted = await hostedServer(useServers(), {}, { pages: await builtPages() })
const { server, port, named, on } = hosted
const browser = useBrowser()
await untilReady(server)

/** As Vite builds its template: one page, whose script reads the path. */
const APP = {
  'index.html': `<!doctype html>
<html lang="en"><head><link rel="icon" type="image/svg+xml" href="/vite.svg"><title>App</title>
<script type="module" crossorigin src="/assets/index-DzV9kd2q.js"></script>
<link rel="stylesheet" crossorigin href="/assets/index-Cx3r8pQa.css"></head><body><div id="app"></div></body></html>`,
  'vite.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  'assets/index-DzV9kd2q.js': `import { greeting } from './chunk-B1x.js'
const app = document.querySelector('#app')
const show = () => {
  app.innerHTML = '<h1></h1><a href="/users/42">Müller</a>'
  app.querySelector('h1').textContent = greeting + location.pathname
}
document.addEventListener('click', (event) => {
  event.preventDefault()
  history.pushState({}, '', event.target.pathname)
  show()
})
addEventListener('popstate', show)
show()`,
  'assets/chunk-B1x.js': "export const greeting = 'grüße von '",
  'assets/index-Cx3r8pQa.css': 'h1 { color: rgb(1, 2, 3) }',
  _redirects: '/* /index.html 200',
}

/** As Astro builds: a folder for each page, and a page for what there is not. */
const page = (title: string): string =>
  `<!doctype html><meta charset="utf-8"><title>${title}</title><link rel="icon" href="/favicon.svg"><link rel="stylesheet" href="/_astro/page.BqQ.css"><h1>${title}</h1><a id="next" href="/blog/first-post">next</a><img src="../favicon.svg" alt="">`
const PAGES = {
  'index.html': page('home'),
  'about/index.html': page('about'),
  'blog/index.html': page('blog'),
  'blog/first-post/index.html': page('first post'),
  '404.html': page('not here'),
  'favicon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  'blog/favicon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  '_astro/page.BqQ.css': 'h1 { color: rgb(4, 5, 6) }',
  _redirects: '/news/* /blog/:splat 302\n/old /about/ 301',
}

const labelOf = (outpoint: string): string => `${outpointLabel(parseOutpoint(outpoint))}.c.localhost`
const app = (await named('app', ...folder(APP))).site.outpoint(0)
const pages = (await named('pages', ...folder(PAGES))).site.outpoint(0)

/** The colour of the heading: whether the style sheet came. */
const colour = (shown: Page): Promise<string> =>
  shown.evaluate(() => getComputedStyle(document.querySelector('h1') as Element).color)

inBrowser.each([
  ['a name', 'app.localhost'],
  ['an outpoint', labelOf(app)],
])('an app of one page runs on the host of %s, and deep paths of it can be reloaded', async (_, host) => {
  const { page: shown, complaints } = await browser.open(`http://${host}${port}/`)
  await says(shown, 'h1', 'grüße von /')
  expect(await colour(shown)).toBe('rgb(1, 2, 3)')
  await press(shown, 'a')
  await says(shown, 'h1', 'grüße von /users/42')
  await shown.reload()
  await says(shown, 'h1', 'grüße von /users/42')
  await shown.goto(`http://${host}${port}/settings/profile/edit?tab=1`)
  await says(shown, 'h1', 'grüße von /settings/profile/edit')
  expect(await colour(shown)).toBe('rgb(1, 2, 3)')
  expect(complaints).toEqual([])
})

inBrowser.each([
  ['a name', 'pages.localhost'],
  ['an outpoint', labelOf(pages)],
])('nested pages are shown on the host of %s, with what they refer to', async (_, host) => {
  const { page: shown, complaints } = await browser.open(`http://${host}${port}/`)
  await says(shown, 'h1', 'home')
  await press(shown, '#next')
  await says(shown, 'h1', 'first post')
  // With its slash, so that what is beside it is found.
  expect(new URL(shown.url()).pathname).toBe('/blog/first-post/')
  expect(await colour(shown)).toBe('rgb(4, 5, 6)')
  await shown.waitForFunction(() => document.images[0]?.complete)
  for (const [path, title, at] of [
    ['/about', 'about', '/about/'],
    ['/news/first-post', 'first post', '/blog/first-post/'],
    ['/old', 'about', '/about/'],
  ] as const) {
    await shown.goto(`http://${host}${port}${path}`)
    await says(shown, 'h1', title)
    expect(new URL(shown.url()).pathname).toBe(at)
  }
  expect(complaints).toEqual([])
  const lost = await shown.goto(`http://${host}${port}/blog/none/such`)
  expect(lost?.status()).toBe(404)
  await says(shown, 'h1', 'not here')
  expect(await colour(shown)).toBe('rgb(4, 5, 6)')
})

inBrowser.each([
  ['a name', '/name/app', 'app.localhost'],
  ['an ordinal', `/ordinal/${app}`, 'app.localhost'],
])('the page about %s frames the host, where absolute paths work, and links to it', async (_, path, host) => {
  const { page: shown, complaints } = await browser.open(`http://localhost${port}${path}`)
  expect(await shown.$eval('.actions a.btn:not(.ghost)', (link) => (link as HTMLAnchorElement).href)).toBe(
    `http://${host}${port}/`,
  )
  const frame = await shown.waitForFrame((each) => each.url().startsWith(`http://${host}`))
  await frame.waitForSelector('h1')
  expect(await frame.$eval('h1', (heading) => heading.textContent)).toBe('grüße von /')
  expect(await frame.$eval('h1', (heading) => getComputedStyle(heading).color)).toBe('rgb(1, 2, 3)')
  // In a sandbox, and without a way to any other host.
  expect(await frame.evaluate(() => self.origin)).toBe('null')
  expect(
    await frame.evaluate(
      (other) =>
        fetch(other).then(
          ({ status }) => status,
          ({ name }: Error) => name,
        ),
      `http://localhost${port}/health/live`,
    ),
  ).toBe('TypeError')
  expect(complaints.filter((each) => !/Content Security Policy|health/.test(each))).toEqual([])
  expect(await textOf(shown, '.frame .url a')).toContain('app.localhost')
})

test('a page in a frame of the service reaches no other host, on the host of a name too', async () => {
  const { headers } = await on('app.localhost', '/?framed')
  expect(headers['content-security-policy']).toMatch(/^default-src 'self'.*frame-src 'none'/)
  expect((await on('app.localhost', '/')).headers['content-security-policy']).toBeUndefined()
  await named('plain', text('x'))
  expect((await on('plain.localhost', '/?framed')).headers['content-security-policy']).toBeUndefined()
})
