/* The page that rlock serve has: the files in src/serve/page, embedded at build time. */
#ifndef RLOCK_SERVE_PAGE_H
#define RLOCK_SERVE_PAGE_H

extern const char page_html[], page_css[], page_js[];

#endif
