/**
 * What `vite build` makes of a small single-page app: absolute paths, hashed assets, a module that reads its route from the path,
 * and what it copies from `public`: the rule of static hosts that each path is the app's.
 *
 * @param options.title Of the page: what is changed for another build.
 */
export function viteBuild({ title }: { title: string }): Record<string, string> {
  return {
    'index.html': `<!doctype html>
<html lang="en">
  <head>
    <meta charset="UTF-8" />
    <link rel="icon" type="image/svg+xml" href="/vite.svg" />
    <meta name="viewport" content="width=device-width, initial-scale=1.0" />
    <title>${title}</title>
    <script type="module" crossorigin src="/assets/index-DiwrgTda.js"></script>
    <link rel="stylesheet" crossorigin href="/assets/index-n_ryQ3BS.css">
  </head>
  <body>
    <div id="app"></div>
  </body>
</html>
`,
    'assets/index-DiwrgTda.js': `${APP}
/* ${'what a framework would be; '.repeat(2000)} */
`,
    'assets/index-n_ryQ3BS.css':
      '#app{max-width:1280px;margin:0 auto;padding:2rem;text-align:center}a{margin:0 1rem}\n',
    _redirects: '/* /index.html 200\n',
    'vite.svg':
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 2"><circle cx="1" cy="1" r="1" fill="#646cff"/></svg>\n',
  }
}

/** A router as such apps have one: links change the path without a request, and the path says what is shown. */
const APP = `const app = document.querySelector('#app')
const show = () => {
  const route = location.pathname === '/' ? 'Home' : 'Route ' + location.pathname
  app.innerHTML = '<h1></h1><p id="route"></p><a href="/">Home</a><a href="/team/ada">Ada</a>'
  app.querySelector('h1').textContent = document.title
  app.querySelector('#route').textContent = route
}
addEventListener('popstate', show)
app.addEventListener('click', (event) => {
  const link = event.target.closest('a')
  if (link === null) return
  event.preventDefault()
  history.pushState({}, '', link.href)
  show()
})
show()`
