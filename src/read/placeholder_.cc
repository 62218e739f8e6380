namespace forebay {}
